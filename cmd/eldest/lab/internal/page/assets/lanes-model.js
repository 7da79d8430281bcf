// What the timeline shows: its lanes, where they are, and which messages are in view. No DOM here.
import { firstAt } from './bounded.js';
import { nameOf } from './names.js';
import { isKnown, SLOW_MS } from './state.js';

// A lane is { id, label, note, kind, spans, lives, beliefs, notes, y, height }. kind is etcd,
// observer, participant or tenure.

const NONE = [];

function newLane(id, kind, label, spans) {
  return { id, kind, label, note: '', spans, lives: NONE, beliefs: NONE, notes: NONE };
}

// lanesOf returns the lanes of the sandbox: the observer and etcd first, then the participants, also
// those that have left while the timeline still shows them. The observer is above etcd, because
// messages are drawn below etcd.
export function lanesOf(state, from) {
  const lanes = [];
  if (state.observer || state.observed.length > 0) {
    lanes.push(newLane('observer', 'observer', 'observer', state.observed));
  }
  lanes.push(newLane('etcd', 'etcd', 'etcd', state.etcd));
  for (const who of state.order) {
    const p = state.participants.get(who);
    if (!p || !isKnown(p) || (p.left !== null && p.left < from)) continue;
    const { lives, beliefs, notes } = p;
    lanes.push({ ...newLane(who, 'participant', who, p.spans), note: p.state.kind, lives, beliefs, notes, p });
  }
  return lanes;
}

const MOST_TENURE_LANES = 40;

// tenureLanesOf returns the lanes of an election of an existing cluster: etcd, then one for each
// candidate that has led or that waits now.
export function tenureLanesOf(state, election) {
  const lanes = new Map();
  const lane = (key, label) => {
    let l = lanes.get(key);
    if (!l) lanes.set(key, (l = newLane(key, 'tenure', label, [])));
    return l;
  };
  const spans = [...(state.tenures.get(election) || NONE).slice(-400), ...(state.waits.get(election) || NONE).slice(-400)];
  for (const span of spans.sort((a, b) => a.from - b.from)) lane(span.key, span.who).spans.push(span);
  const queue = state.queues.get(election);
  for (const place of queue ? queue.places : NONE) if (!place.foreign) lane(place.key, nameOf(place));
  return [newLane('etcd', 'etcd', 'etcd', state.etcd), ...[...lanes.values()].slice(-MOST_TENURE_LANES)];
}

export const AXIS = 24; // the height of the axis
const PINNED = { observer: 26, etcd: 46 };

function heightOf(count, narrow) {
  if (count <= 6) return narrow ? 48 : 54;
  if (count <= 14) return 32;
  return 22;
}

// layout sets y and height of each lane, for the given position of the scroll bar. The lanes of etcd
// and the observer stay at the top. It returns { pinned, total }: where the pinned lanes end, and
// the height of everything.
export function layout(lanes, scrollTop, narrow) {
  let pinned = AXIS;
  const others = lanes.filter((l) => !(l.kind in PINNED));
  for (const l of lanes) {
    if (!(l.kind in PINNED)) continue;
    l.y = pinned;
    l.height = PINNED[l.kind];
    pinned += l.height;
  }
  const height = heightOf(others.length, narrow);
  others.forEach((l, i) => {
    l.y = pinned + i * height - scrollTop;
    l.height = height;
  });
  return { pinned, total: pinned + others.length * height };
}

// inView calls use with each message that is at least partly between two times.
export function inView(state, from, to, use) {
  const { messages } = state;
  const begin = firstAt(messages, from - SLOW_MS);
  const oldest = begin < messages.length ? messages[begin].at : Infinity;
  for (let i = begin; i < messages.length && messages[i].at <= to; i++) {
    const m = messages[i];
    if (m.at >= from || m.end === null || m.end >= from) use(m);
  }
  for (const m of state.slow) if (m.at < from - SLOW_MS && m.end >= from) use(m);
  for (const m of state.held.values()) if (m.at < from - SLOW_MS || m.at < oldest) use(m);
}

// density counts messages by lane, in bins of equal time: id -> { sent, lost }, of counts.
export function density(state, from, to, bins, showRenewals) {
  const lanes = new Map();
  const width = (to - from) / bins;
  let most = 1;
  inView(state, from, to, (m) => {
    if (m.renewal && !showRenewals) return;
    const bin = Math.floor((m.at - from) / width);
    if (bin < 0 || bin >= bins) return;
    let lane = lanes.get(m.who);
    if (!lane) lanes.set(m.who, (lane = { sent: new Uint16Array(bins), lost: new Uint16Array(bins) }));
    lane.sent[bin]++;
    if (m.state === 'lost') lane.lost[bin]++;
    if (lane.sent[bin] > most) most = lane.sent[bin];
  });
  return { lanes, most, bins };
}

// distance returns how far a point is from the line between two others.
export function distance(px, py, x1, y1, x2, y2) {
  const dx = x2 - x1;
  const dy = y2 - y1;
  const length = dx * dx + dy * dy;
  const t = length === 0 ? 0 : Math.max(0, Math.min(1, ((px - x1) * dx + (py - y1) * dy) / length));
  return Math.hypot(px - x1 - t * dx, py - y1 - t * dy);
}

// step returns a round time between two lines of the axis, so that they are about pixels apart.
export function step(msPerPixel, pixels = 90) {
  const wanted = msPerPixel * pixels;
  const power = 10 ** Math.floor(Math.log10(wanted));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= wanted) return factor * power;
  return 10 * power;
}

// stepLabel formats a time of the axis.
export function stepLabel(at, every) {
  if (every >= 1_000) {
    const seconds = Math.round(at / 1_000);
    if (seconds < 120) return `${seconds} s`;
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  }
  const digits = every >= 100 ? 1 : every >= 10 ? 2 : every >= 1 ? 3 : 4;
  return `${(at / 1_000).toFixed(digits)} s`;
}
