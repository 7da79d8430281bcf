// The sentence at the top of the page: which candidate leads, and why.
import { FRESH_MS, believes } from './beliefs.js';
import { nameOf } from './names.js';
import { duration } from './words.js';

// headline returns { text, tone, leader } for the queue of an election: tone is good, wait or bad,
// and leader is the name of the candidate that leads, if one does. In a sandbox all participants are
// known, so that a key of no participant has no owner.
export function headline(state, queue, now, sandbox) {
  const live = liveOverlap(state, now);
  if (live) {
    const text = `Two leaders: ${live.a} and ${live.b} are both sure that they lead, for ${duration(live.to - live.from)}.`;
    return { text, tone: 'bad', leader: '' };
  }
  const places = queue ? queue.places.filter((p) => !p.foreign) : [];
  const headless = sandbox && hasNoLeader(state);
  if (places.length === 0) {
    if (headless) return { text: NO_LEADER, tone: 'wait', leader: '' };
    const some = [...state.participants.values()].some((p) => p.state.life === 'running' || p.state.life === 'starting');
    const text = some ? 'Nobody leads: no candidate has a key yet.' : 'Nobody leads: the queue is empty.';
    return { text, tone: 'wait', leader: '' };
  }
  const first = places[0];
  const name = nameOf(first);
  const why = ending(state, places, first, queue, now, sandbox);
  if (why) return { text: why, tone: 'wait', leader: '' };
  const waiting = places.length - 1 + (queue.more || 0);
  const others = waiting === 0 ? 'no other candidate' : waiting === 1 ? '1 candidate' : `${waiting} candidates`;
  const text = `${name} leads with token ${first.create}, because its key is the oldest; ${others} ${waiting > 1 ? 'wait' : 'waits'}.`
    + (headless ? ' etcd has no leader, so this lasts only until its deadline.' : '');
  return { text, tone: 'good', leader: name };
}

const NO_LEADER = 'etcd has no leader: nothing can be written, and no lease expires. Continue or restart its members.';

// hasNoLeader reports whether the members of etcd are known, and none of them leads.
function hasNoLeader(state) {
  return state.members.length > 0 && !state.members.some((m) => m.state === 'leader');
}

// liveOverlap returns an overlap of beliefs that has not ended, as far as is known.
export function liveOverlap(state, now) {
  const last = state.overlaps.at(-1);
  return last && now - last.to < FRESH_MS ? last : null;
}

// ending says why the candidate with the oldest key does not lead; "" if it leads. Of a candidate
// that reports nothing to the page, only its key is known, and the oldest key leads.
function ending(state, places, first, queue, now, sandbox) {
  const p = state.participants.get(first.who || '');
  if (sandbox && hasNoLeader(state) && !(p && p.status === 'leads' && p.state.life === 'running')) return NO_LEADER;
  const left = timeLeft(first, queue.at, now);
  const until = left > 0 ? `until its lease expires, in ${duration(left)}` : 'until its lease expires';
  const next = places.length > 1 ? ` After that, ${nameOf(places[1])} is next.` : '';
  if (!p) return sandbox ? `Nobody leads: the oldest key belongs to no participant, and stays ${until}.${next}` : '';
  const name = p.who;
  if (p.state.life === 'dead') return `Nobody leads: ${name} is dead, and its key stays ${until}.${next}`;
  if (p.state.life === 'stopped') return `${name} is stopped and does nothing; its key is the oldest ${until}.${next}`;
  if (isStale(p, first)) return `Nobody leads: the oldest key is an earlier one of ${name}, whose session is gone; it stays ${until}.${next}`;
  if (p.status === 'out' && believes(p, now)) return `${name} has passed its deadline and is still sure that it leads; its key stays ${until}.${next}`;
  switch (p.status) {
    case 'leads':
      return '';
    case 'suspended':
      return `Nobody leads: ${name} is suspended, because no heartbeat is acknowledged. Its key is still the oldest.`;
    case 'queued':
      return `Nobody leads yet: the key of ${name} is the oldest, and ${name} has to prove it.`;
    default:
      return `Nobody leads: the oldest key is that of ${name}, which does not lead; it stays ${until}.${next}`;
  }
}

// isStale reports whether a key is an earlier one of a participant that has another one now.
export function isStale(p, place) {
  return p.key !== '' && p.key !== place.key;
}

// timeLeft returns the time that a candidate's lease has left; -1: unknown.
export function timeLeft(place, at, now) {
  if (typeof place.left_ms !== 'number' || place.left_ms < 0) return -1;
  return Math.max(0, place.left_ms - Math.max(0, now - at));
}

// waitsFor returns for which candidate each place of a queue waits: a name, "all" or "".
export function waitsFor(state, places) {
  let older = ''; // the next older candidate
  let oldest = '';
  let any = ''; // the next older key, also if it is foreign
  return places.map((place) => {
    if (place.foreign) {
      any = nameOf(place);
      return '';
    }
    const p = state.participants.get(place.who || '');
    const kind = p ? p.state.kind : '';
    const answer = kind === 'herd' && oldest ? 'all' : kind === 'concurrency' ? any : older;
    older = any = nameOf(place);
    oldest = oldest || older;
    return answer;
  });
}
