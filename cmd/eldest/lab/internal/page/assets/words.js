// The words of the page, each with one sentence that explains it. The terms are those of etcd and of
// docs/book/glossary.md.

// terms are shown underlined; the sentence appears on hover and on focus. index.html names them with
// data-term.
export const terms = {
  candidate: 'A participant with a key in the queue. Each candidate has one key.',
  queue: 'The keys of an election, in the order of their create revisions. The candidate with the oldest key leads.',
  leader: 'The candidate that has proven that its key exists and is the oldest.',
  token: "The create revision of a candidate's key. Each new leader has a greater one, so a store can refuse an old leader.",
  'create revision': "etcd's revision at which a key was created. It decides the order of the queue.",
  revision: "etcd's counter of changes: one for the whole store.",
  lease: "etcd's object that expires unless it is renewed. When it expires, etcd deletes the keys that are bound to it.",
  ttl: 'Time to live: how long a lease lasts after its last renewal.',
  'raft term': "The number of etcd's own leader elections so far. Each new leader of etcd has a greater term.",
  member: "One of etcd's servers. etcd works while more than half of its members run and can reach each other.",
  observer: 'A participant that reads which candidate leads, and never campaigns. What it reports is true at its revision, and may be out of date. It names the owner of the oldest key, which may be dead, or may still have to prove it.',
  tenure: 'The time from a win to its end. It has one token.',
  belief: 'The participant has checked itself and is sure that it leads now. If two are sure at once, the protocol has failed.',
  suspended: 'The leader stops its work, because no heartbeat was acknowledged in time. It keeps its key and its token.',
  foreign: "A key in the range of the election that is not a candidate's. Eldest ignores it; etcd's own package waits for it.",
  compact: 'etcd forgets the history before now. A watch that still needs the history fails and has to start again.',
  event: 'etcd sends an event to each watch whose keys have changed.',
  held: 'A message that waits in this page. Release passes it on; Drop loses it, and its call fails. Its sender does not wait for ever: Eldest gives an attempt up after two seconds at most, and sends it again.',
  breakpoint: 'Messages of this kind wait in this page until you release or drop them.',
  rule: 'A rule of the code that can be taken out of a participant, to see what the rule is for. This restarts the participant.',
  scenario: 'A list of actions with the time between them. It can be played again.',
  renewal: 'A request that restarts the time to live of a lease. Each participant sends one again and again.',
};

// kinds are the kinds of participants. short is for where there is little room.
const kinds = {
  eldest: { label: 'Eldest', short: 'Eldest', tip: 'A candidate of this project. It waits for the next older candidate only, and its deadline ends before its lease can expire.' },
  heartbeats: { label: 'Eldest, heartbeats', short: 'heartbeats', tip: 'A candidate of this project whose leader writes a heartbeat again and again. If the heartbeats stop for a second, the next candidate deletes its key: faster than the lease.' },
  keeper: { label: 'Eldest, keeper', short: 'keeper', tip: 'A candidate of this project with a second process beside it, which revokes the lease as soon as the first process has died.' },
  concurrency: { label: "etcd's package", short: "etcd's package", tip: "A candidate of etcd's own Go package, client/v3/concurrency." },
  herd: { label: 'Naive herd', short: 'naive herd', tip: 'The naive protocol: each candidate watches the whole queue, so each departure wakes all of them.' },
};

export function kindOf(kind) {
  return (Object.hasOwn(kinds, kind) && kinds[kind]) || { label: kind || 'unknown', short: kind, tip: 'What this participant is has not been reported yet.' };
}

// phases are the core's names, as in docs/states.md.
export const phases = {
  idle: 'It has no key and campaigns for nothing.',
  entering: 'It registers: it writes its key into the queue.',
  waiting: 'Its key is in the queue, and it watches the key of the next older candidate.',
  proving: 'It asks etcd whether its key still exists and is the oldest.',
  leading: 'It leads: at one revision its key existed, and no older key did.',
  draining: 'It does not lead any more, and keeps its key: its work ends, or it waits for a heartbeat to be acknowledged.',
  leaving: 'It deletes its key.',
  lost: 'Its session has ended: its lease has expired, or its deadline has passed.',
};

// statuses are what a participant has reported of itself.
export const statuses = {
  out: { label: 'not queued', tip: 'It has reported no campaign, or its last one has ended.' },
  queued: { label: 'waits', tip: 'It campaigns: it registers, and waits until its key is the oldest.' },
  leads: { label: 'leads', tip: 'It has proven that its key is the oldest, and does the work of the leader.' },
  suspended: { label: 'suspended', tip: terms.suspended },
};

export const lives = {
  starting: { label: 'starting', tip: 'Its process starts.' },
  running: { label: 'running', tip: 'Its process runs.' },
  stopped: { label: 'stopped', tip: 'Its process is stopped (SIGSTOP): it does nothing, and its lease is not renewed.' },
  dead: { label: 'dead', tip: 'Its process has ended. Its key stays in the queue until its lease expires or is revoked.' },
  left: { label: 'left', tip: 'It has left the election in good order.' },
};

// memberStates are those of etcd's members.
export const memberStates = {
  leader: "It leads etcd's own replication (Raft). This is not the leader of the election.",
  follower: "It follows etcd's leader, and answers clients too.",
  stopped: 'Its process is stopped (SIGSTOP).',
  down: 'It does not run.',
  unknown: 'It does not answer.',
};

// actions have a label for the button, a sentence for its tooltip, and a text for the list of what
// was done.
export const actions = {
  add: { label: 'Add', tip: 'Start one more participant.', done: (a) => `add ${a.on ? `${a.on}: ` : ''}${kindOf(a.kind).label}${without(a.rule)}` },
  resign: { label: 'Resign', tip: 'It gives up the leadership, or its position in the queue, and campaigns again at the end of the queue.' },
  leave: { label: 'Leave', tip: 'It leaves the election in good order: it deletes its key, and its process ends.' },
  kill: { label: 'Kill', tip: 'kill -9: the process ends at once and deletes nothing. Its key stays until its lease expires.' },
  restart: { label: 'Restart', tip: 'Start a new process under the same name.' },
  stop: { label: 'Stop', tip: 'SIGSTOP: the process does nothing until it is continued, like a machine that pauses.' },
  continue: { label: 'Continue', tip: 'SIGCONT: the process goes on where it was stopped.' },
  cut: { label: 'Cut off', tip: 'Its messages are lost, in both directions, and its connection stays open.', done: (a) => `cut off ${a.on}: ${ways[a.way || 'both']}` },
  delay: { label: 'Delay', tip: 'Each of its messages arrives so much later. 0 ends it.', done: (a) => (a.ms ? `delay the messages of ${a.on} by ${a.ms} ms` : `end the delay of ${a.on}`) },
  heal: { label: 'Heal', tip: 'End the cut, the delay and the loss of the next reply. What is lost stays lost.' },
  'lose-reply': { label: 'Lose next reply', tip: "The next reply to it is lost, and its call fails: the outcome of its request is unknown.", done: (a) => `lose the next reply to ${a.on}` },
  'delete-key': { label: 'Delete its key', tip: 'An operator deletes its key in etcd.', done: (a) => (a.on ? `delete the key of ${a.on}` : `delete the key ${a.key}`) },
  'revoke-lease': { label: 'Revoke its lease', tip: 'An operator revokes its lease in etcd. etcd deletes the keys that are bound to it.', done: (a) => `revoke the lease of ${a.on}` },
  transfer: { label: 'Transfer to it', tip: 'The leader is asked to hand over to this candidate. The candidates before it register again, behind it, with new tokens.', done: (a) => `transfer the leadership to ${a.on || a.key || 'a candidate'}` },
  hold: { label: 'Hold messages', tip: 'Every request and every reply of it waits in this page, until you release or drop it.', done: (a) => `hold the messages of ${a.on}` },
  unhold: { label: 'Hold no more', tip: 'No message of it waits any more, and its breakpoints are removed. What is held is released.', done: (a) => `hold the messages of ${a.on} no more` },
  breakpoint: { label: 'Breakpoints', tip: terms.breakpoint, done: (a) => ((a.breakpoints || []).length > 0 ? `breakpoints of ${a.on}: ${a.breakpoints.join(', ')}` : `no breakpoints of ${a.on}`) },
  rule: { label: 'Rule', tip: terms.rule, done: (a) => (a.rule ? `restart ${a.on} without the rule ${a.rule}` : `restart ${a.on} with all rules`) },
  release: { label: 'Release', tip: 'Pass the message on.', done: (a) => `release ${whichMessage(a)}` },
  drop: { label: 'Drop', tip: 'The message is lost, and its call fails.', done: (a) => `drop ${whichMessage(a)}` },
  'member-kill': { label: 'Kill', tip: 'The member ends at once. Its data stays on its disk.', done: (a) => `kill ${member(a)}` },
  'member-stop': { label: 'Stop', tip: 'The member is stopped: it answers nothing until it is continued.', done: (a) => `stop ${member(a)}` },
  'member-continue': { label: 'Continue', tip: 'The member goes on.', done: (a) => `continue ${member(a)}` },
  'member-restart': { label: 'Restart', tip: 'Start the member again, with the data on its disk.', done: (a) => `restart ${member(a)}` },
  'move-leader': { label: 'Make leader', tip: "etcd's leader hands over to this member.", done: (a) => `make ${member(a)} the leader of etcd` },
  compact: { label: 'Compact', tip: terms.compact, done: () => 'compact etcd' },
  evict: { label: 'Evict', tip: "Delete the candidate's key. It is notified at once, and if it leads, the next one leads.", done: (a) => `evict ${a.key} of ${a.election}` },
  reset: { label: 'Begin anew', tip: 'All participants leave, and the participants of the beginning are started again.', done: () => 'begin anew' },
  play: { label: 'Play', tip: 'Begin anew, and do the steps of the scenario.', done: () => 'begin a scenario' },
};

export const ways = { both: 'both ways', requests: 'requests only', replies: 'replies only' };

function without(rule) {
  return rule ? ` without the rule ${rule}` : '';
}

function member(a) {
  return `m${(a.member || 0) + 1}`; // as etcd's members are named
}

function whichMessage(a) {
  if (a.message) return `message ${a.message}${a.on ? ' of ' + a.on : ''}`;
  return `the oldest held ${a.match || 'message'}${a.on ? ' of ' + a.on : ''}`;
}

// describe says what an action does, in a few words.
export function describe(action) {
  const a = action || {};
  const known = actions[a.do];
  if (!known) return String(a.do || 'an unknown action');
  if (known.done) return known.done(a);
  return a.on ? `${a.do.replaceAll('-', ' ')} ${a.on}` : a.do.replaceAll('-', ' ');
}

// reportText says what a participant has reported, in one line.
export function reportText(note) {
  return `${note.kind}${note.token ? `, token ${note.token}` : ''}${note.text ? `: ${note.text}` : ''}`;
}

// duration formats milliseconds for people.
export function duration(ms) {
  const d = Math.max(0, ms);
  if (d < 0.1) return 'less than 0.1 ms';
  if (d < 10) return `${d.toFixed(1)} ms`;
  if (d < 1_000) return `${Math.round(d)} ms`;
  if (d < 60_000) return `${(d / 1_000).toFixed(1)} s`;
  if (d < 3_600_000) return `${Math.floor(d / 60_000)} min ${Math.floor((d % 60_000) / 1_000)} s`;
  return `${Math.floor(d / 3_600_000)} h ${Math.floor((d % 3_600_000) / 60_000)} min`;
}

// clockTime formats a time since the beginning.
export function clockTime(ms) {
  return `${(ms / 1_000).toFixed(3)} s`;
}
