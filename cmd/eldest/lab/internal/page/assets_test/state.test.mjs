// The state of the page, from events that are written by hand. Run with: node --test
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { apply, keylessSince, KEPT, newState, shown } from '../assets/state.js';
import { LEAST_OVERLAP_MS, believes } from '../assets/beliefs.js';
import { headline, timeLeft, waitsFor } from '../assets/headline.js';

// log numbers events and applies them.
function log() {
  const state = newState();
  let seq = 0;
  const add = (at, type, fields = {}) => apply(state, [{ seq: ++seq, at_ms: at, type, ...fields }]);
  return {
    state, add,
    participant: (at, who, life = 'running', fields = {}) =>
      add(at, 'participant', { who, participant: { kind: 'eldest', life, lives: 1, ttl_ms: 5000, ...fields } }),
    report: (at, who, kind, fields = {}) => add(at, 'report', { who, report: { kind, ...fields } }),
    sent: (at, who, id, fields = {}) =>
      add(at, 'sent', { who, message: { id, kind: 'request', method: 'Txn', call: id, text: `Txn ${id}`, ...fields } }),
    of: (at, type, id) => add(at, type, { message: { id } }),
    sure(from, to, who, token) {
      for (let at = from; at <= to; at += 25) this.report(at, who, 'sure', { token });
    },
    queue: (at, ...places) => add(at, 'queue', {
      queue: { election: 'e', revision: 10, places: places.map((p) => ({ mod: p.create, lease: '1a', left_ms: 4000, granted_ms: 5000, ...p })) },
    }),
  };
}

test('the status of a participant follows its reports', () => {
  const l = log();
  l.participant(0, 'p1');
  const p = l.state.participants.get('p1');
  assert.equal(p.status, 'out');
  l.report(10, 'p1', 'joined', { lease: '1a' });
  assert.deepEqual([p.status, p.lease], ['queued', '1a']);
  l.report(20, 'p1', 'phase', { text: 'waiting' });
  assert.equal(p.phase, 'waiting');
  l.report(30, 'p1', 'won', { token: 7, key: 'e/1a' });
  assert.deepEqual([p.status, p.token, p.key], ['leads', 7, 'e/1a']);
  l.report(40, 'p1', 'suspended', { token: 7 });
  assert.deepEqual([p.status, p.token], ['suspended', 7]);
  l.report(50, 'p1', 'resumed', { token: 7, key: 'e/1a' });
  l.report(60, 'p1', 'ended', { token: 7 });
  assert.deepEqual([p.status, p.token, p.key], ['out', 0, '']);
  assert.deepEqual(p.spans.map((s) => [s.kind, s.from, s.to]),
    [['queued', 10, 30], ['leads', 30, 40], ['suspended', 40, 50], ['leads', 50, 60]]);
});

test('two beliefs at once are an overlap', () => {
  const l = log();
  l.participant(0, 'p1');
  l.participant(0, 'p3');
  l.sure(100, 1400, 'p1', 5);
  assert.equal(believes(l.state.participants.get('p1'), 1410), true);
  assert.deepEqual(l.state.overlaps, []);
  l.sure(1000, 2200, 'p3', 9);
  assert.deepEqual(l.state.overlaps, [{ a: 'p1', b: 'p3', from: 1000, to: 1400 }]);
  assert.equal(headline(l.state, null, 1401).tone, 'bad');
  l.report(2225, 'p1', 'not sure', { token: 5 });
  l.report(2225, 'p3', 'not sure', { token: 9 });
  assert.equal(l.state.overlaps.length, 1);
  assert.equal(believes(l.state.participants.get('p3'), 2230), false);
});

test('an overlap grows while both go on', () => {
  const l = log();
  for (let at = 0; at <= 1000; at += 20) {
    l.report(at, 'p1', 'sure', { token: 5 });
    if (at >= 300) l.report(at + 1, 'p2', 'sure', { token: 6 });
  }
  assert.deepEqual(l.state.overlaps, [{ a: 'p1', b: 'p2', from: 301, to: 1000 }]);
});

test('what is between the last "sure" and "not sure" is not claimed', () => {
  const l = log();
  l.sure(0, 500, 'p1', 5);
  l.report(540, 'p1', 'not sure', { token: 5 });
  l.sure(510, 900, 'p2', 6);
  assert.deepEqual(l.state.overlaps, []);
});

test('beliefs that only touch are no overlap', () => {
  const l = log();
  l.sure(0, 500, 'p1', 5);
  l.sure(500 - LEAST_OVERLAP_MS + 1, 900, 'p2', 6);
  assert.deepEqual(l.state.overlaps, []);
});

test('a belief does not extend over a stop', () => {
  const l = log();
  l.participant(0, 'p1');
  l.participant(0, 'p2');
  l.sure(0, 500, 'p1', 5);
  l.participant(510, 'p1', 'stopped');
  assert.equal(believes(l.state.participants.get('p1'), 515), false);
  l.report(505, 'p1', 'sure', { token: 5 }); // read late
  l.sure(3000, 9000, 'p2', 6);
  l.participant(6000, 'p1', 'running');
  l.report(509, 'p1', 'sure', { token: 5 }); // a check from before the stop, reported after it
  l.report(6001, 'p1', 'not sure', { token: 5 });
  assert.deepEqual(l.state.overlaps, []);
  const p = l.state.participants.get('p1');
  assert.deepEqual(p.beliefs.map((b) => [b.from, b.to, b.open]), [[0, 509, false]]);
});

test('a participant that is sure after a stop is a second leader', () => {
  const l = log();
  l.participant(0, 'p1');
  l.participant(0, 'p2');
  l.sure(0, 500, 'p1', 5);
  l.participant(510, 'p1', 'stopped');
  l.sure(3000, 6000, 'p2', 6);
  l.participant(6000, 'p1', 'running');
  for (let at = 6001; at < 7000; at += 25) {
    l.report(at, 'p1', 'sure', { token: 5 });
    l.report(at + 1, 'p2', 'sure', { token: 6 });
  }
  assert.equal(l.state.overlaps.length, 1);
  assert.deepEqual([l.state.overlaps[0].from, l.state.overlaps[0].to], [6001, 6976]);
});

test('a killed participant has no status and no belief, and a new process begins anew', () => {
  const l = log();
  l.participant(0, 'p1');
  l.report(5, 'p1', 'joined');
  l.report(10, 'p1', 'won', { token: 5 });
  l.sure(10, 60, 'p1', 5);
  l.participant(70, 'p1', 'dead');
  l.report(65, 'p1', 'won', { token: 5 }); // what it wrote is read late
  const p = l.state.participants.get('p1');
  assert.deepEqual([p.status, p.token, p.phase], ['out', 0, '']);
  assert.equal(p.spans.at(-1).to, 70);
  l.participant(100, 'p1', 'starting', { lives: 2 });
  l.participant(110, 'p1', 'running', { lives: 2 });
  assert.deepEqual(p.lives.map((s) => [s.kind, s.from, s.to]), [['dead', 70, 100], ['starting', 100, 110]]);
  l.report(120, 'p1', 'joined');
  assert.equal(p.status, 'queued');
});

test('a restart without a death between begins anew too', () => {
  const l = log();
  l.participant(0, 'p1');
  l.report(10, 'p1', 'won', { token: 5 });
  l.participant(50, 'p1', 'running', { lives: 2, rule: 'guard' });
  const p = l.state.participants.get('p1');
  assert.deepEqual([p.status, p.state.rule], ['out', 'guard']);
});

test('one that has left is not shown, and its name may be used again', () => {
  const l = log();
  l.participant(0, 'p1');
  l.participant(0, 'p10');
  l.participant(0, 'p2');
  assert.deepEqual(shown(l.state).map((p) => p.who), ['p1', 'p2', 'p10']);
  l.participant(50, 'p2', 'left');
  assert.deepEqual(shown(l.state).map((p) => p.who), ['p1', 'p10']);
  l.participant(60, 'p9', 'left'); // never seen
  assert.equal(l.state.participants.has('p9'), false);
  l.participant(70, 'p2', 'starting');
  assert.deepEqual(shown(l.state).map((p) => p.who), ['p1', 'p2', 'p10']);
});

test('held messages wait until they arrive or are lost', () => {
  const l = log();
  l.sent(0, 'p1', 1);
  l.sent(1, 'p1', 2);
  l.sent(2, 'p2', 3);
  l.of(3, 'held', 1);
  l.of(3, 'held', 2);
  l.of(4, 'delivered', 3);
  assert.deepEqual([...l.state.held.keys()], [1, 2]);
  l.of(900, 'delivered', 2);
  l.of(950, 'lost', 1);
  assert.equal(l.state.held.size, 0);
  assert.deepEqual(l.state.gone.map((m) => m.id), [1]);
  assert.deepEqual(l.state.messages.map((m) => [m.id, m.state, m.end]), [[1, 'lost', 950], [2, 'delivered', 900], [3, 'delivered', 4]]);
  assert.deepEqual(l.state.slow.map((m) => m.id), [2, 1]);
});

test('a held message that was sent before the feed begins can be released', () => {
  const l = log();
  l.add(10, 'held', { who: 'p1', message: { id: 77 } });
  assert.equal(l.state.held.get(77).who, 'p1');
  l.of(20, 'delivered', 77);
  assert.equal(l.state.held.size, 0);
  l.of(21, 'delivered', 99); // of an unknown message
  assert.equal(l.state.messages.length, 1);
});

test('messages are in the order of their times, also if they come late', () => {
  const l = log();
  l.sent(5, 'p1', 1);
  l.sent(9, 'p1', 2);
  l.sent(7, 'p2', 3);
  assert.deepEqual(l.state.messages.map((m) => m.id), [1, 3, 2]);
});

test('a scenario begins with nothing', () => {
  for (const error of [undefined, 'a member does not answer']) {
    const l = log();
    l.add(0, 'members', { members: [{ name: 'm1', state: 'leader' }] });
    l.add(0, 'observer', { who: 'observer', observer: { state: 'nobody' } });
    l.participant(0, 'p1');
    l.report(10, 'p1', 'joined');
    l.sent(12, 'p1', 1);
    l.of(13, 'held', 1);
    l.queue(20, { key: 'e/1a', who: 'p1', create: 5 });
    l.sure(20, 100, 'p1', 5);
    l.sure(20, 100, 'p2', 6);
    const { resets } = l.state;
    l.add(200, 'action', { action: { do: 'play' }, error });
    const s = l.state;
    assert.deepEqual([s.participants.size, s.order.length, s.messages.length, s.byID.size, s.held.size, s.queues.size, s.overlaps.length], [0, 0, 0, 0, 0, 0, 0]);
    assert.deepEqual([s.begin, s.resets, s.actions.length, s.members.length], [200, resets + 1, 1, 1]);
    assert.deepEqual(s.etcd.map((e) => [e.text, e.from]), [['m1', 200]]);
    assert.deepEqual(s.observed.map((o) => [o.kind, o.from]), [['nobody', 200]]);
    l.participant(210, 'p1', 'left'); // of an earlier participant: it adds nothing
    assert.equal(s.participants.size, 0);
    l.participant(220, 'p1', 'starting');
    l.add(230, 'action', { action: { do: 'reset' } }); // it began with the other one
    assert.deepEqual(shown(s).map((p) => p.who), ['p1']);
  }
});

test('events are applied once, and another run of the program begins anew', () => {
  const state = newState();
  const sent = (seq, id) => ({ seq, at_ms: seq, type: 'sent', who: 'p1', message: { id } });
  apply(state, [sent(1, 1), sent(2, 2)]);
  apply(state, [sent(2, 2), sent(3, 3)]);
  assert.deepEqual([state.sent, state.seq], [3, 3]);
  apply(state, [sent(1, 1)]);
  assert.deepEqual([state.sent, state.seq, state.now], [1, 1, 1]);
});

test('old states of a reader that was too slow come in any order', () => {
  const state = newState();
  const participant = (seq, who, life) => ({ seq, at_ms: seq, type: 'participant', who, participant: { kind: 'eldest', life, lives: 1 } });
  apply(state, [participant(50, 'p1', 'running')]);
  apply(state, [participant(900, 'p2', 'stopped'), participant(300, 'p3', 'running'), participant(40, 'p1', 'starting')]);
  assert.deepEqual(state.order, ['p1', 'p2', 'p3']);
  assert.equal(state.participants.get('p1').state.life, 'running');
  assert.equal(state.participants.get('p2').state.life, 'stopped');
});

test('the memory is bounded', () => {
  const state = newState();
  const events = [];
  for (let i = 1; i <= 2 * KEPT.messages; i++) {
    events.push({ seq: 2 * i, at_ms: i, type: 'sent', who: `p${i % 50}`, message: { id: i } });
    if (i > 10) events.push({ seq: 2 * i + 1, at_ms: i + 0.5, type: 'delivered', message: { id: i } });
    else events.push({ seq: 2 * i + 1, at_ms: i + 0.5, type: 'held', message: { id: i } });
  }
  apply(state, events);
  const most = KEPT.messages * 1.1 + 1;
  assert.ok(state.messages.length >= KEPT.messages && state.messages.length <= most);
  assert.ok(state.byID.size <= most + 10);
  assert.equal(state.held.size, 10); // they wait, and are kept
  apply(state, [{ at_ms: 99_999, type: 'delivered', message: { id: 1 } }]);
  assert.equal(state.held.size, 9);
  assert.equal(state.byID.has(1), false);

  for (let i = 0; i < 3_000; i++) {
    apply(state, [
      { at_ms: i, type: 'report', who: 'p1', report: { kind: i % 2 ? 'joined' : 'won', token: i } },
      { at_ms: i, type: 'report', who: 'p1', report: { kind: 'sure', token: i } },
      { at_ms: i, type: 'action', action: { do: 'kill', on: 'p1' } },
      { at_ms: i, type: 'queue', queue: { election: 'e', places: [{ key: `e/${i}`, create: i }] } },
      { at_ms: i, type: 'problem', error: 'no' },
    ]);
  }
  const p = state.participants.get('p1');
  for (const [array, kept] of [[p.spans, KEPT.spans], [p.notes, KEPT.notes], [p.beliefs, 300], [state.actions, KEPT.actions],
    [state.tenures.get('e'), KEPT.tenures], [state.problems, KEPT.problems]]) {
    assert.ok(array.length <= kept * 1.1 + 1, `${array.length} of ${kept}`);
  }
});

test('a page that was opened late infers who is queued and who leads', () => {
  const l = log();
  l.participant(0, 'p1');
  l.participant(0, 'p2');
  l.queue(10, { key: 'e/1', who: 'p1', create: 5 }, { key: 'e/2', who: 'p2', create: 6 });
  assert.equal(l.state.participants.get('p2').status, 'queued');
  l.report(20, 'p1', 'sure', { token: 5 });
  assert.equal(l.state.participants.get('p1').status, 'leads');
  assert.match(headline(l.state, l.state.queues.get('e'), 30).text, /^p1 leads with token 5/);
});

test('the queue says who waits for whom', () => {
  const l = log();
  l.participant(0, 'p1');
  l.participant(0, 'p2', 'running', { kind: 'concurrency' });
  l.participant(0, 'p3');
  l.participant(0, 'p4', 'running', { kind: 'herd' });
  l.queue(10, { key: 'e/1', who: 'p1', create: 5 }, { key: 'e/x', create: 6, foreign: true }, { key: 'e/2', who: 'p2', create: 7 },
    { key: 'e/y', create: 8, foreign: true }, { key: 'e/3', who: 'p3', create: 9 }, { key: 'e/4', who: 'p4', create: 10 });
  assert.deepEqual(waitsFor(l.state, l.state.queues.get('e').places), ['', '', 'x', '', 'p2', 'all']);
});

test('the headline says why nobody leads', () => {
  const l = log();
  const of = () => headline(l.state, l.state.queues.get('e'), 1000);
  assert.equal(headline(l.state, null, 0).tone, 'wait');
  l.participant(0, 'p1');
  l.queue(0, { key: 'e/1', who: 'p1', create: 5 }, { key: 'e/2', who: 'p2', create: 6 });
  l.report(1, 'p1', 'joined');
  assert.match(of().text, /has to prove it/);
  l.report(2, 'p1', 'won', { token: 5 });
  assert.deepEqual([of().tone, of().leader], ['good', 'p1']);
  l.participant(3, 'p1', 'stopped');
  assert.match(of().text, /^p1 is stopped .* in 3\.0 s\. After that, p2 is next\.$/);
  l.participant(4, 'p1', 'dead');
  assert.match(of().text, /p1 is dead/);
  l.queue(5);
  assert.match(of().text, /the queue is empty/);
  l.participant(6, 'p1', 'starting', { lives: 2 });
  assert.match(of().text, /no candidate has a key/);
});

test('the old key of a process that was restarted is told from the new one', () => {
  const l = log();
  const of = () => headline(l.state, l.state.queues.get('e'), 1000, true);
  l.participant(0, 'p1', 'running', { lives: 2 });
  l.report(1, 'p1', 'joined', { key: 'e/2' });
  l.queue(2, { key: 'e/1', who: 'p1', create: 5 }, { key: 'e/2', who: 'p1', create: 6 });
  assert.match(of().text, /^Nobody leads: the oldest key is an earlier one of p1, whose session is gone; /);
  l.queue(3, { key: 'e/2', who: 'p1', create: 6 });
  assert.match(of().text, /has to prove it/);
});

test('the headline says that a leader has passed its deadline, and that etcd has no leader', () => {
  const l = log();
  const of = () => headline(l.state, l.state.queues.get('e'), 1000, true);
  l.participant(0, 'p1');
  l.queue(0, { key: 'e/1', who: 'p1', create: 5 });
  l.report(1, 'p1', 'won', { token: 5, key: 'e/1' });
  l.report(2, 'p1', 'ended');
  l.sure(100, 1000, 'p1', 5);
  assert.match(of().text, /^p1 has passed its deadline and is still sure that it leads; its key stays until /);
  l.add(1000, 'members', { members: [{ name: 'm1', state: 'follower' }, { name: 'm2', state: 'stopped' }] });
  assert.match(of().text, /^etcd has no leader: /);
  l.report(1000, 'p1', 'won', { token: 5, key: 'e/1' });
  assert.equal(of().leader, 'p1'); // until its deadline
  assert.match(of().text, /etcd has no leader, so this lasts only/);
  l.queue(1000);
  assert.match(of().text, /^etcd has no leader: /);
});

test('a candidate that waits without a key is known', () => {
  const l = log();
  l.participant(0, 'p1');
  const p = l.state.participants.get('p1');
  l.report(1, 'p1', 'joined', { key: 'e/1' });
  l.queue(2, { key: 'e/1', who: 'p1', create: 5 });
  assert.equal(keylessSince(p, 5_000), null);
  l.queue(1_000);
  assert.equal(keylessSince(p, 1_100), null); // it may be about to report that
  assert.equal(keylessSince(p, 2_000), 1_000);
  l.report(2_000, 'p1', 'phase', { text: 'entering' });
  assert.equal(keylessSince(p, 3_000), null);
});

test('an action that adds names the participant', () => {
  const l = log();
  l.participant(0, 'p1', 'starting');
  l.add(1, 'action', { action: { do: 'add', kind: 'eldest' } });
  l.add(2, 'action', { action: { do: 'add', kind: 'eldest' } }); // its participant is not known
  assert.deepEqual(l.state.actions.map((a) => a.action.on), ['p1', undefined]);
});

test('a key of no participant has no owner in a sandbox', () => {
  const state = newState();
  const places = [{ key: 'e/1', value: 'orphan', create: 5, left_ms: 1_000 }];
  apply(state, [{ at_ms: 0, type: 'queue', queue: { election: 'e', revision: 1, places } }]);
  const text = (sandbox) => headline(state, state.queues.get('e'), 0, sandbox).text;
  assert.match(text(true), /^Nobody leads: the oldest key belongs to no participant/);
  assert.match(text(false), /^orphan leads with token 5/);
});

test("a lease's time left goes on between two states", () => {
  assert.equal(timeLeft({ left_ms: 4000 }, 100, 1100), 3000);
  assert.equal(timeLeft({ left_ms: 4000 }, 100, 9000), 0);
  assert.equal(timeLeft({ left_ms: -1 }, 100, 9000), -1);
  assert.equal(timeLeft({}, 100, 9000), -1);
});

test('tenures follow the oldest key of an existing cluster', () => {
  const l = log();
  const place = (lease, create, value) => ({ key: `e/${lease}`, create, value, who: value });
  l.queue(0, place('1', 5, 'anna'), place('2', 6, 'bert'));
  l.queue(50, place('1', 5, 'anna'), place('2', 6, 'bert'), place('3', 7, 'carl'));
  l.queue(90, place('2', 6, 'bert'), place('3', 7, 'carl'));
  l.queue(120);
  assert.deepEqual(l.state.tenures.get('e').map((t) => [t.who, t.token, t.from, t.to]), [['anna', 5, 0, 90], ['bert', 6, 90, 120]]);
});

test('elections that have ended are forgotten when there are too many', () => {
  const l = log();
  const queue = (election, ...places) => l.add(0, 'queue', { queue: { election, revision: 10, places } });
  for (let i = 0; i <= KEPT.elections; i++) {
    queue(`run-${i}`, { key: `run-${i}/1`, create: i + 2, value: 'anna', who: 'anna' });
  }
  l.add(10, 'elections', { elections: [{ name: 'run-7', candidates: 1, leader: 'anna', token: 9 }] });
  assert.deepEqual([...l.state.queues.keys()], ['run-7']);
  assert.deepEqual([...l.state.tenures.keys()], ['run-7']);
});

test('events that are incomplete do no harm', () => {
  const state = newState();
  apply(state, [
    null, 7, {}, { type: 'queue' }, { type: 'queue', queue: { election: 'e', places: null } }, { type: 'participant' },
    { type: 'participant', who: 'p1' }, { type: 'report', who: 'p1' }, { type: 'sent' }, { type: 'sent', message: {} }, { type: 'held' },
    { type: 'members' }, { type: 'elections' }, { type: 'observer' }, { type: 'action' }, { type: 'problem' }, { type: 'unheard of' },
    { type: 'sent', message: { id: 4 } }, { type: 'lost', message: { id: 4 } },
  ]);
  assert.equal(state.messages.length, 1);
  assert.equal(headline(state, state.queues.get('e'), 0).tone, 'wait');
});
