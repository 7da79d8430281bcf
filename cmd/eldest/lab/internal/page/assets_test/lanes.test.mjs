// Which messages the timeline shows, and where its lanes are. Run with: node --test
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { firstAt, spanAt } from '../assets/bounded.js';
import { density, distance, inView, lanesOf, layout, step, stepLabel, tenureLanesOf } from '../assets/lanes-model.js';
import { apply, newState } from '../assets/state.js';

function sample() {
  const state = newState();
  const message = (at, id, who, end) => {
    apply(state, [{ at_ms: at, type: 'sent', who, message: { id, kind: 'request', renewal: id % 2 === 1 } }]);
    if (end === 'held') apply(state, [{ at_ms: at, type: 'held', message: { id } }]);
    else apply(state, [{ at_ms: end, type: id === 6 ? 'lost' : 'delivered', message: { id } }]);
  };
  for (const who of ['p1', 'p2']) {
    apply(state, [{ at_ms: 0, type: 'participant', who, participant: { kind: 'eldest', life: 'running', lives: 1 } }]);
  }
  message(0, 1, 'p1', 'held');
  message(100, 2, 'p1', 9_000); // slow
  message(4_990, 3, 'p2', 5_010);
  message(5_100, 4, 'p2', 5_101);
  message(5_200, 5, 'p1', 5_201);
  message(5_300, 6, 'p1', 5_301);
  message(7_000, 7, 'p1', 7_001);
  return state;
}

const idsInView = (state, from, to) => {
  const ids = [];
  inView(state, from, to, (m) => ids.push(m.id));
  return ids.sort((a, b) => a - b);
};

test('a view has what is partly in it, also what was sent long before', () => {
  const state = sample();
  assert.deepEqual(idsInView(state, 5_000, 6_000), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(idsInView(state, 0, 50), [1]);
  assert.deepEqual(idsInView(state, 9_500, 9_900), [1]);
});

test('density counts what is not hidden', () => {
  const state = sample();
  const { lanes, most } = density(state, 5_000, 6_000, 10, false);
  assert.deepEqual([...lanes.get('p2').sent], [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
  assert.deepEqual([...lanes.get('p1').lost], [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  assert.equal(lanes.get('p1').sent[2], 0);
  assert.equal(density(state, 5_000, 6_000, 10, true).lanes.get('p1').sent[2], 1);
  assert.equal(most, 1);
});

test('a message of an unknown participant makes no lane', () => {
  const state = sample();
  apply(state, [{ at_ms: 1, type: 'sent', who: 'p9', message: { id: 99 } }]);
  assert.deepEqual(lanesOf(state, 0).map((l) => l.id), ['etcd', 'p1', 'p2']);
});

test('the lanes of etcd and the observer stay at the top', () => {
  const state = sample();
  apply(state, [{ at_ms: 1, type: 'observer', who: 'observer', observer: { state: 'nobody' } }]);
  const lanes = lanesOf(state, 0);
  assert.deepEqual(lanes.map((l) => l.id), ['observer', 'etcd', 'p1', 'p2']);
  const still = layout(lanes, 0, false);
  const [observer, etcd, p1, p2] = lanes.map((l) => l.y);
  assert.equal(p1, still.pinned);
  assert.equal(p2 + lanes[3].height, still.total);
  layout(lanes, 30, false);
  assert.deepEqual(lanes.map((l) => l.y), [observer, etcd, p1 - 30, p2 - 30]);
});

test('a participant that has left is shown while the view contains it', () => {
  const state = newState();
  const life = (at, is) => apply(state, [{ at_ms: at, type: 'participant', who: 'p1', participant: { kind: 'eldest', life: is, lives: 1 } }]);
  life(0, 'running');
  life(100, 'left');
  assert.equal(lanesOf(state, 50).length, 2);
  assert.equal(lanesOf(state, 150).length, 1);
});

test('an existing cluster has a lane for each candidate that led or waits', () => {
  const state = newState();
  const queue = (at, ...places) => apply(state, [{ at_ms: at, type: 'queue', queue: { election: 'e', revision: 1, places } }]);
  const [anna, bert] = [{ key: 'e/1', value: 'anna', create: 5 }, { key: 'e/2', value: 'bert', create: 6 }];
  queue(0, anna, bert, { key: 'e/x', create: 7, foreign: true });
  queue(50, bert);
  const spans = (l) => l.spans.map((s) => [s.kind, s.from, s.to]);
  assert.deepEqual(tenureLanesOf(state, 'e').map((l) => [l.label, spans(l)]), [
    ['etcd', []], ['anna', [['leads', 0, 50]]], ['bert', [['queued', 0, 50], ['leads', 50, null]]],
  ]);
  assert.deepEqual(tenureLanesOf(state, 'unknown').map((l) => l.id), ['etcd']);
});

test('times are found', () => {
  const all = [1, 3, 3, 7].map((at) => ({ at }));
  assert.deepEqual([0, 1, 2, 3, 4, 8].map((at) => firstAt(all, at)), [0, 0, 1, 1, 3, 4]);
  const spans = [{ from: 0, to: 10 }, { from: 20, to: null }];
  assert.deepEqual([5, 15, 99, -1].map((at) => spanAt(spans, at)), [spans[0], null, spans[1], null]);
});

test('steps of the axis are round', () => {
  assert.deepEqual([0.01, 1, 20, 300].map((scale) => step(scale)), [1, 100, 2_000, 50_000]);
  assert.deepEqual([stepLabel(2_000, 1_000), stepLabel(185_000, 1_000), stepLabel(1_250, 50), stepLabel(1.5, 0.5)],
    ['2 s', '3:05', '1.25 s', '0.0015 s']);
});

test('a point is as far from a line as from its nearest point', () => {
  assert.equal(distance(5, 3, 0, 0, 10, 0), 3);
  assert.equal(distance(14, 3, 0, 0, 10, 0), 5);
  assert.equal(distance(3, 4, 0, 0, 0, 0), 5);
});
