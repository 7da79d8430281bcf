// The setups of lessons, with a rule and without it. Run with: node --test
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { lessons } from '../assets/lessons.js';
import { otherSetup, takesOut } from '../assets/setups.js';
import { describe } from '../assets/words.js';

const rules = [{ name: 'deadline', kinds: ['eldest'] }];
const breakpoint = { after_ms: 10, do: 'breakpoint', on: 'p1', breakpoints: ['Txn answer'] };

test('the other setup puts the rule back, or takes it out', () => {
  const without = {
    title: 'A', rule: 'deadline',
    setup: { name: 'A', steps: [{ after_ms: 0, do: 'add', kind: 'eldest', rule: 'deadline' }, { after_ms: 5, do: 'add', kind: 'herd' }, breakpoint] },
  };
  const all = otherSetup(without, rules);
  assert.deepEqual(all, {
    name: 'A, with all rules',
    steps: [{ after_ms: 0, do: 'add', kind: 'eldest' }, { after_ms: 5, do: 'add', kind: 'herd' }, breakpoint],
  });
  assert.equal(takesOut(without.setup), true);
  const back = otherSetup({ ...without, setup: all }, rules);
  assert.deepEqual(back.steps, without.setup.steps);
});

test('each step of each lesson can be described', () => {
  for (const lesson of lessons) {
    for (const step of lesson.setup.steps) {
      assert.doesNotMatch(describe(step), /undefined|unknown/, `${lesson.id}: ${JSON.stringify(step)}`);
    }
  }
});
