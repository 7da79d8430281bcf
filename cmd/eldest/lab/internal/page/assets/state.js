// The state of the page: what the events of the feed add up to.
//
// There is no DOM here and no clock: a state depends only on the events, so that it can be tested
// with events that are written by hand (../assets_test/state.test.mjs). An event changes the state
// in place. Everything that grows with the time is bounded by KEPT.
//
// Participants, messages and queues may be mentioned before the event that introduces them, because
// the feed keeps only the newest events: then they are created from what is known.
import { insert, push } from './bounded.js';
import * as beliefs from './beliefs.js';
import { nameOf, natural, shortKey } from './names.js';

export const KEPT = {
  messages: 20_000, // of all participants
  slow: 2_000, // messages that were on their way for longer than SLOW_MS
  spans: 400, // of each kind, of each participant
  notes: 300, // reports of each participant
  actions: 500,
  problems: 100,
  overlaps: 200,
  tenures: 1_000, // of each election
  gone: 50, // held messages that were lost
  elections: 1_000, // those that have ended count until there are more than these
  participants: 200, // those that have left count until there are more than these
};

// SLOW_MS is the time after which a message on its way counts as slow. The timeline looks for slow
// ones separately: they may have been sent long before the time that it shows.
export const SLOW_MS = 500;

// NOTED are the kinds of reports that are kept as notes. The others are too many, or are shown
// otherwise.
const NOTED = new Set([
  'joined', 'won', 'suspended', 'resumed', 'ended', 'failed', 'leaving', 'resigning', 'evicted',
  'yielded', 'crashed', 'exited', 'stuck', 'refused', 'fence refused', 'left',
]);

// STATES are the types of events that replace the one before them.
const STATES = new Set(['participant', 'members', 'queue', 'elections', 'observer']);

export function newState() {
  const state = { resets: 0 };
  forgetAll(state);
  return state;
}

// forgetAll is for another run of the program, whose events are numbered from 1 again.
function forgetAll(state) {
  state.seq = 0;
  state.version = 0; // counts the events that were applied
  state.now = 0; // the greatest time of an event
  state.newest = new Map(); // of each thing that has states: the number of its newest state
  state.members = [];
  state.elections = [];
  state.observer = null;
  forget(state, 0);
}

// forget is for a new beginning, with a scenario or without: participants, lanes, messages and queues are
// forgotten. The members and the observer stay.
function forget(state, at) {
  state.begin = at;
  state.resets++;
  state.participants = new Map(); // by name
  state.order = []; // their names, in natural order
  state.added = ''; // the one that came last, until it is known which action added it
  state.messages = []; // by the time at which they were sent
  state.byID = new Map();
  state.held = new Map(); // messages that wait for the user, by ID, in the order in which they came
  state.gone = []; // messages that waited for the user and were lost
  state.slow = [];
  state.sent = 0; // counts messages
  state.queues = new Map(); // by election
  state.tenures = new Map(); // by election: who had the oldest key, and when
  state.waits = new Map(); // by election: who had another key, and when
  state.observed = []; // spans
  state.overlaps = []; // times in which two participants believed that they lead
  state.actions = [];
  state.problems = [];
  state.etcd = []; // spans: which member of etcd leads
  if (state.members.length > 0) led(state, at);
  if (state.observer) observed(state, at);
}

// apply applies events, in their order.
export function apply(state, events) {
  for (const e of events) {
    if (e !== null && typeof e === 'object') applyOne(state, e);
  }
}

function applyOne(state, e) {
  const seq = e.seq || 0;
  if (seq === 1 && state.seq > 1) forgetAll(state);
  if (STATES.has(e.type)) {
    // A reader that was too slow is given the newest state of everything first, in any order.
    const thing = thingOf(e);
    if (seq > 0 && seq <= (state.newest.get(thing) || 0)) return;
    state.newest.set(thing, seq);
  } else if (seq > 0 && seq <= state.seq) {
    return;
  }
  state.seq = Math.max(state.seq, seq);
  const at = e.at_ms || 0;
  state.now = Math.max(state.now, at);
  state.version++;
  const handle = handlers[e.type];
  if (handle) handle(state, e, at);
}

function thingOf(e) {
  switch (e.type) {
    case 'queue':
      return 'queue ' + (e.queue ? e.queue.election : '');
    case 'participant':
    case 'observer':
      return e.type + ' ' + (e.who || '');
    default:
      return e.type;
  }
}

const handlers = {
  participant: onParticipant,
  report: onReport,
  sent: onSent,
  held: onHeld,
  delivered: (state, e, at) => onArrived(state, e, at, 'delivered'),
  lost: (state, e, at) => onArrived(state, e, at, 'lost'),
  members: onMembers,
  queue: onQueue,
  elections: onElections,
  observer: onObserver,
  action: onActed,
  problem: (state, e, at) => push(state.problems, { at, seq: e.seq, text: e.error || 'an unknown problem' }, KEPT.problems),
};

// Elections of an existing cluster.

function onElections(state, e) {
  state.elections = e.elections || [];
  if (state.queues.size <= KEPT.elections) return;
  const listed = new Set(state.elections.map((x) => x.name));
  for (const name of [...state.queues.keys()].filter((x) => !listed.has(x))) {
    for (const of of [state.queues, state.tenures, state.waits]) of.delete(name);
    state.newest.delete('queue ' + name);
  }
}

// Participants.

function newParticipant(who) {
  return {
    who,
    state: { kind: '', life: 'starting', lives: 0, ttl_ms: 0 },
    status: 'out', // out, queued, leads or suspended: by its reports
    known: false, // it has reported its status: else it is inferred from its key and its beliefs
    phase: '', // the core's name, if it has one
    token: 0,
    key: '',
    lease: '',
    unlisted: null, // since when the queue has no key of it; null: it has one, or that is unknown
    left: null, // when it left in good order
    spans: [], // of its status
    lives: [], // spans in which it was starting, stopped or dead
    beliefs: [], // spans in which it was sure to lead: see beliefs.js
    ranSince: 0, // since when its process runs without a stop
    haltedAt: 0, // when it last stopped running
    notes: [],
  };
}

// participantOf returns the participant with a name, which it adds if it is not known.
function participantOf(state, who) {
  let p = state.participants.get(who);
  if (!p) {
    p = newParticipant(who);
    state.participants.set(who, p);
    state.order.push(who);
    state.added = who;
    state.order.sort(natural);
    if (state.participants.size > KEPT.participants) dropLeft(state, who);
  }
  return p;
}

function dropLeft(state, except) {
  let oldest = null;
  for (const p of state.participants.values()) {
    if (p.who !== except && p.left !== null && (oldest === null || p.left < oldest.left)) oldest = p;
  }
  if (oldest === null) return;
  state.participants.delete(oldest.who);
  state.order = state.order.filter((who) => who !== oldest.who);
}

function onParticipant(state, e, at) {
  const next = e.participant;
  if (!next || !e.who) return;
  if (next.life === 'left' && !state.participants.has(e.who)) return;
  const p = participantOf(state, e.who);
  const before = p.state;
  p.state = { ...next };
  if (next.lives > before.lives || next.life !== before.life) lived(p, before, at);
  p.left = next.life === 'left' ? at : null;
}

// lived notes a change of a participant's process.
function lived(p, before, at) {
  const { life, lives } = p.state;
  const halted = life === 'stopped' || life === 'dead' || life === 'left';
  const reborn = lives > before.lives && before.lives > 0;
  close(p.lives, at);
  if (life !== 'running' && life !== 'left') push(p.lives, { from: at, to: null, kind: life }, KEPT.spans);
  if (halted) {
    p.haltedAt = at;
    beliefs.halted(p);
  } else if (before.life !== 'starting' || reborn) {
    p.ranSince = at;
  }
  if (life === 'dead' || life === 'left' || reborn) {
    beliefs.halted(p);
    become(p, 'out', at);
    p.phase = '';
    p.lease = '';
  }
}

// runs reports whether a participant has a process, stopped or not.
function runs(p) {
  return p.state.life !== 'dead' && p.state.life !== 'left';
}

// become changes the status of a participant.
function become(p, status, at, token = 0) {
  if (status === 'out' || status === 'queued') {
    p.token = 0;
    p.key = '';
  } else if (token > 0) {
    p.token = token;
  }
  const last = p.spans.at(-1);
  if (p.status === status && last && last.to === null && last.token === p.token) return;
  close(p.spans, at);
  p.status = status;
  if (status !== 'out') push(p.spans, { from: at, to: null, kind: status, token: p.token }, KEPT.spans);
}

// close ends the newest span, if it is open.
function close(spans, at) {
  const last = spans.at(-1);
  if (last && last.to === null) last.to = Math.max(at, last.from);
}

function onReport(state, e, at) {
  const r = e.report;
  if (!r || !e.who) return;
  const p = participantOf(state, e.who);
  if (r.kind === 'sure' || r.kind === 'not sure') {
    beliefs.report(state, p, r.kind === 'sure', at, r.token || 0);
    if (r.kind === 'sure' && !p.known && p.status !== 'leads' && runs(p)) become(p, 'leads', at, r.token || 0);
    return;
  }
  if (NOTED.has(r.kind)) push(p.notes, { at, kind: r.kind, token: r.token || 0, text: r.text || '' }, KEPT.notes);
  // What a process wrote before it died may be read after that.
  if (!runs(p)) return;
  switch (r.kind) {
    case 'phase':
      p.phase = r.text || '';
      return;
    case 'joined':
      become(p, 'queued', at);
      break;
    case 'won':
    case 'resumed':
      become(p, 'leads', at, r.token || 0);
      break;
    case 'suspended':
      become(p, 'suspended', at, r.token || 0);
      break;
    case 'ended':
    case 'failed':
      become(p, 'out', at);
      break;
    default:
      return;
  }
  p.known = true;
  if (r.key && p.status !== 'out') p.key = r.key;
  if (r.lease) p.lease = r.lease;
}

// Messages.

function onSent(state, e, at) {
  const m = e.message;
  if (!m || !m.id || state.byID.has(m.id)) return;
  const who = e.who || '';
  if (who && who !== 'observer') participantOf(state, who);
  add(state, {
    id: m.id, who, kind: m.kind || 'request', method: m.method || '', call: m.call || 0, text: m.text || '',
    lines: m.lines || [], body: m.body === undefined ? null : m.body, revision: m.revision || 0,
    renewal: m.renewal === true, at, end: null, heldAt: null, state: 'sent',
  });
}

function add(state, m) {
  state.sent++;
  state.byID.set(m.id, m);
  for (const old of insert(state.messages, m, KEPT.messages)) {
    if (!state.held.has(old.id)) state.byID.delete(old.id);
  }
}

function onHeld(state, e, at) {
  const id = e.message && e.message.id;
  if (!id) return;
  if (!state.byID.has(id)) {
    // It was sent before the oldest event that the feed keeps. It can still be released.
    onSent(state, { ...e, message: { text: 'a message that was sent long ago', ...e.message } }, at);
  }
  const m = state.byID.get(id);
  m.state = 'held';
  m.heldAt = at;
  state.held.set(id, m);
}

function onArrived(state, e, at, how) {
  const id = e.message && e.message.id;
  if (!id) return;
  const m = state.byID.get(id);
  const waited = state.held.delete(id);
  if (!m) return;
  m.state = how;
  m.end = Math.max(at, m.at);
  if (m.end - m.at > SLOW_MS) push(state.slow, m, KEPT.slow);
  if (waited && how === 'lost') push(state.gone, m, KEPT.gone);
  // A message that waited for long may not be among the messages any more.
  if (waited && (state.messages.length === 0 || state.messages[0].at > m.at)) state.byID.delete(id);
}

// etcd.

function leadingMember(members) {
  const leader = members.find((m) => m.state === 'leader');
  return leader ? leader.name : '';
}

function onMembers(state, e, at) {
  state.members = e.members || [];
  led(state, at);
}

// led notes which member leads.
function led(state, at) {
  const leader = leadingMember(state.members);
  const last = state.etcd.at(-1);
  if (last && last.to === null && last.text === leader) return;
  close(state.etcd, at);
  push(state.etcd, { from: at, to: null, kind: leader ? 'led' : 'nobody', text: leader }, KEPT.spans);
}

function onQueue(state, e, at) {
  const q = e.queue;
  if (!q) return;
  const places = q.places || [];
  for (const place of places) {
    const p = state.participants.get(place.who || '');
    if (p && !p.known && p.status === 'out' && runs(p)) become(p, 'queued', at);
  }
  const listed = new Set(places.map((place) => place.who));
  for (const p of state.participants.values()) {
    if (listed.has(p.who) || q.more > 0) p.unlisted = null;
    else p.unlisted ??= at;
  }
  state.queues.set(q.election, { election: q.election, revision: q.revision || 0, places, more: q.more || 0, at });
  const first = places.find((p) => !p.foreign);
  wait(state, q.election, places.filter((p) => !p.foreign && p !== first), at);
  let tenures = state.tenures.get(q.election);
  if (!tenures) state.tenures.set(q.election, (tenures = []));
  const last = tenures.at(-1);
  const open = last && last.to === null ? last : null;
  if (open && first && open.token === first.create && open.key === first.key) {
    open.who = nameOf(first); // its value may have changed
    return;
  }
  close(tenures, at);
  if (first) {
    const { key, create: token } = first;
    push(tenures, { from: at, to: null, kind: 'leads', key, token, who: nameOf(first) }, KEPT.tenures);
  }
}

// wait notes who waits.
function wait(state, election, places, at) {
  let waits = state.waits.get(election);
  if (!waits) state.waits.set(election, (waits = []));
  const waiting = new Map(places.map((p) => [p.key, p]));
  for (const span of waits) {
    if (span.to !== null) continue;
    if (waiting.get(span.key)?.create === span.token) waiting.delete(span.key);
    else span.to = Math.max(at, span.from);
  }
  for (const { key, create: token, ...p } of waiting.values()) {
    push(waits, { from: at, to: null, kind: 'queued', key, token, who: nameOf({ key, ...p }) }, KEPT.tenures);
  }
}

function onObserver(state, e, at) {
  if (!e.observer) return;
  state.observer = { ...e.observer, at };
  observed(state, at);
}

// observed notes what the observer reports.
function observed(state, at) {
  const o = state.observer;
  const last = state.observed.at(-1);
  const token = o.token || 0;
  const text = o.value || shortKey(o.key);
  if (last && last.to === null && last.kind === o.state && last.token === token && last.text === text) return;
  close(state.observed, at);
  push(state.observed, { from: at, to: null, kind: o.state, token, text, why: o.why || '' }, KEPT.spans);
}

function onActed(state, e, at) {
  let action = e.action || { do: '?' };
  // A reset begins with this one too, and its own event comes later. All participants have ended, even
  // if something else has failed.
  if (action.do === 'play') forget(state, at);
  // The participant comes before the action that has added it, which does not name it.
  if (action.do === 'add' && !e.error && state.added) {
    action = { ...action, on: action.on || state.added };
    state.added = '';
  }
  push(state.actions, { at, seq: e.seq || state.version, action, error: e.error || '' }, KEPT.actions);
}

// isKnown reports whether the state of a participant was received. A late message of a participant
// of an earlier scenario makes no card and no lane.
export function isKnown(p) {
  return p.state.lives > 0;
}

// A key and the report of it come at different times: that a key is missing counts after this time.
const KEYLESS_MS = 400;

// keylessSince returns since when a participant waits although the queue has no key of it; null if it
// has one, or does not wait for its turn.
export function keylessSince(p, now) {
  const span = p.spans.at(-1);
  if (p.state.life !== 'running' || p.status !== 'queued' || p.phase === 'entering' || p.unlisted === null || !span) return null;
  const since = Math.max(p.unlisted, span.from);
  return now - since > KEYLESS_MS ? since : null;
}

// shown returns the participants that have not left, in their order.
export function shown(state) {
  const all = [];
  for (const who of state.order) {
    const p = state.participants.get(who);
    if (p && isKnown(p) && p.left === null) all.push(p);
  }
  return all;
}
