// Beliefs: the times in which a participant was sure to lead, and the times in which two were.
//
// A participant checks itself every millisecond, and reports some of the checks: "sure" or "not
// sure", at the time at which the check began. A belief is the time from the first "sure" to the
// last one. What is between the last "sure" and the next "not sure" is unknown, and is not claimed:
// a red overlap is proven.
//
// A process that is stopped is sure of nothing, because it does nothing. What it does first when it
// continues may still be a report of a check from before the stop. So a belief does not extend over
// a stop: after it, another one begins, with the first check that began after it.
import { push } from './bounded.js';
import { natural } from './names.js';

// LEAST_OVERLAP_MS is the shortest overlap that is shown. The checks need some time themselves.
export const LEAST_OVERLAP_MS = 5;

// FRESH_MS is how long the newest "sure" may be ago, so that a belief counts as one of the present. It
// is usually some tens of milliseconds ago; on a busy machine it is more.
export const FRESH_MS = 1_000;

const MOST_BELIEFS = 300; // of each participant
const MOST_OVERLAPS = 200;

// LATE_MS is how far a check may be from a belief to which it still belongs.
const LATE_MS = 1_000;

// report adds a check to a participant's beliefs.
export function report(state, p, sure, at, token) {
  const last = p.beliefs.at(-1);
  if (!sure) {
    if (last && at >= last.to) last.open = false;
    return;
  }
  const life = p.state.life;
  const halted = life === 'stopped' || life === 'dead' || life === 'left';
  const began = halted ? Math.min(at, p.haltedAt) : at;
  const open = !halted && began >= p.ranSince;
  let belief = last;
  if (last && last.token === token && (last.open || (!open && began - last.to < LATE_MS))) {
    last.to = Math.max(last.to, began);
  } else if (!last || began >= last.to) {
    belief = { from: began, to: began, open, token };
    push(p.beliefs, belief, MOST_BELIEFS);
    if (last) last.open = false;
  } else {
    return; // older than the newest belief
  }
  overlap(state, p, belief);
}

// halted ends the belief of a participant whose process does not run any more.
export function halted(p) {
  const last = p.beliefs.at(-1);
  if (last) last.open = false;
}

// overlap looks for other participants that were sure to lead while belief lasted.
function overlap(state, p, belief) {
  for (const q of state.participants.values()) {
    if (q === p) continue;
    for (let i = q.beliefs.length - 1; i >= 0 && q.beliefs[i].to >= belief.from; i--) {
      const other = q.beliefs[i];
      const from = Math.max(belief.from, other.from);
      const to = Math.min(belief.to, other.to);
      if (to - from >= LEAST_OVERLAP_MS) note(state, p.who, q.who, from, to);
    }
  }
}

function note(state, one, two, from, to) {
  const [a, b] = natural(one, two) < 0 ? [one, two] : [two, one];
  for (let i = state.overlaps.length - 1; i >= 0; i--) {
    const o = state.overlaps[i];
    if (o.a === a && o.b === b && o.from === from) {
      o.to = Math.max(o.to, to);
      return;
    }
  }
  push(state.overlaps, { a, b, from, to }, MOST_OVERLAPS);
}

// believes reports whether a participant is sure to lead now, as far as is known.
export function believes(p, now) {
  const last = p.beliefs.at(-1);
  return Boolean(last && last.open && p.state.life === 'running' && now - last.to < FRESH_MS);
}
