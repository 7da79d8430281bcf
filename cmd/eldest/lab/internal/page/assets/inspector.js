// The inspector: everything about the message or the participant that is chosen.
import { button, h, keyed, setAttr, setText, show, term } from './dom.js';
import { firstAt } from './bounded.js';
import { actions, clockTime, duration, kindOf, lives, phases, reportText, statuses, terms } from './words.js';

const MOST_BODY = 40_000; // letters of JSON that are shown
const MOST_OTHERS = 200; // messages of the same call that are listed
const MOST_NOTES = 40;

// TEXTS are the fields of etcd's messages that have bytes: JSON has them in base64.
const TEXTS = new Set(['key', 'value', 'range_end', 'rangeEnd']);

export function inspectorPanel(root, app) {
  const el = {
    empty: root.querySelector('.inspector-empty'),
    message: root.querySelector('.inspector-message'),
    participant: root.querySelector('.inspector-participant'),
  };
  const message = messageView(el.message, app);
  const participant = participantView(el.participant, app);
  app.handle({
    'message-previous': () => step(app, -1),
    'message-next': () => step(app, 1),
    'choose-message': (b) => app.choose({ message: Number(b.dataset.message) }),
    'close-message': () => app.choose({ message: 0 }),
  });
  return {
    update(now) {
      const m = app.state.byID.get(app.choice.message) || app.state.held.get(app.choice.message);
      const p = app.state.participants.get(app.choice.participant);
      show(el.message, Boolean(m));
      show(el.participant, !m && Boolean(p));
      show(el.empty, !m && !p);
      if (m) message(m, now);
      else if (p) participant(p, now);
    },
  };
}

// step chooses the message before or after the chosen one: of the same participant, if one is chosen.
function step(app, by) {
  const { messages } = app.state;
  const now = app.state.byID.get(app.choice.message);
  const who = app.choice.participant;
  let i = now ? firstAt(messages, now.at) : by < 0 ? messages.length : messages.length - 1;
  if (now) while (i < messages.length && messages[i] !== now && messages[i].at === now.at) i++;
  for (i += now || by < 0 ? by : 0; i >= 0 && i < messages.length; i += by) {
    const m = messages[i];
    if ((who && m.who !== who) || m.renewal) continue;
    app.choose({ message: m.id });
    return;
  }
  app.say('There is no other message.');
}

// facts makes a list of names and values, of which update changes the values.
function facts(names) {
  const values = new Map();
  const list = h('dl', { class: 'facts' });
  for (const [name, tip] of names) {
    const dd = h('dd', {});
    const dt = h('dt', {}, tip ? term(name, tip) : name);
    values.set(name, { dt, dd });
    list.append(dt, dd);
  }
  const set = (name, value) => {
    const { dt, dd } = values.get(name);
    const text = value === undefined || value === null || value === '' || value === 0 ? '' : String(value);
    show(dt, text !== '');
    show(dd, text !== '');
    setText(dd, text);
  };
  return { list, set };
}

function stepTip(side) {
  return `The message ${side} this one: of all, or of the participant that is chosen. Renewals are left out.`;
}

const STATES = { sent: 'on its way', held: 'waits in this page', delivered: 'delivered', lost: 'lost' };

function messageView(root, app) {
  const title = h('h3', {});
  const route = h('p', { class: 'hint' });
  const about = facts([
    ['State', ''], ['Sent at', ''], ['On its way for', ''], ['Revision', terms.revision],
    ['Call', 'A call is a request with everything that etcd sends because of it.'], ['Part of', terms.renewal],
  ]);
  const text = h('p', { class: 'message-text' });
  const lines = h('pre', { class: 'code', tabindex: 0, 'aria-label': 'The message, line by line' });
  const body = h('pre', { class: 'code', tabindex: 0, 'aria-label': 'The message as JSON' });
  const whole = h('details', {},
    h('summary', { data: { action: 'body' } }, 'The whole message (JSON)'),
    h('p', { class: 'hint' }, 'Keys and values that are text are shown as text.'), body);
  const others = h('ol', { class: 'others' });
  const call = h('div', {}, h('h4', {}, 'The same call'), others);
  const release = button('release', 'Release', { tip: actions.release.tip, kind: 'primary' });
  const drop = button('drop', 'Drop', { tip: actions.drop.tip, kind: 'danger' });
  const held = h('div', { class: 'buttons' }, release, drop);
  root.append(
    h('div', { class: 'inspector-head' }, title,
      h('div', { class: 'buttons' },
        button('message-previous', '‹', { name: 'Previous message', tip: stepTip('before'), kind: 'small' }),
        button('message-next', '›', { name: 'Next message', tip: stepTip('after'), kind: 'small' }),
        button('close-message', '×', { name: 'Close the message', kind: 'small' }))),
    route, held, about.list, text, lines, whole, call);
  let latest = '';
  return (m, now) => {
    setText(title, `${m.method || 'Message'} ${m.kind}`);
    const [from, to] = m.kind === 'request' ? [m.who, 'etcd'] : ['etcd', m.who];
    setText(route, `${from || 'a client'} → ${to || 'a client'}`);
    root.dataset.message = m.id;
    root.dataset.state = m.state;
    show(held, m.state === 'held');
    for (const b of [release, drop]) {
      b.dataset.message = m.id;
      b.dataset.on = m.who;
    }
    about.set('State', STATES[m.state]);
    about.set('Sent at', clockTime(m.at - app.state.begin));
    about.set('On its way for', duration((m.end ?? now) - m.at));
    about.set('Revision', m.revision);
    about.set('Call', m.call ? `${m.call}` : '');
    about.set('Part of', m.renewal ? 'the renewal of a lease' : '');
    const signature = `${m.id} ${app.state.resets}`;
    if (latest !== signature) {
      latest = signature;
      setText(text, m.text);
      show(lines, m.lines.length > 1);
      setText(lines, m.lines.join('\n'));
      show(whole, m.body !== null);
      setText(body, m.body === null ? '' : pretty(m.body));
    }
    const all = callOf(app.state, m);
    show(call, all.length > 1);
    keyed(others, all.length > 1 ? all : [], (o) => o.id, create, (li, o) => {
      const b = li.firstElementChild;
      setText(b.firstElementChild, `${o.kind === 'request' ? '→' : '←'} ${o.text || o.kind}`);
      setText(b.lastElementChild, o.state === 'delivered' ? clockTime(o.at - app.state.begin) : o.state);
      setAttr(b, 'aria-current', o.id === m.id ? 'true' : null);
    });
  };
}

// callOf returns the messages of the same call: of a long one, those around the message.
function callOf(state, m) {
  if (!m.call) return [];
  const all = state.messages.filter((other) => other.call === m.call && other.who === m.who);
  const begin = Math.max(0, all.indexOf(m) - MOST_OTHERS / 2);
  return all.slice(begin, begin + MOST_OTHERS);
}

function create(m) {
  const choose = { type: 'button', class: 'row', data: { action: 'choose-message', message: m.id } };
  return h('li', {}, h('button', choose, h('span', { class: 'row-text' }), h('span', { class: 'row-note number' })));
}

// pretty formats a message as JSON, with its bytes as text where they are text.
function pretty(body) {
  const readable = (key, value) => (typeof value === 'string' && TEXTS.has(key) ? decoded(value) : value);
  const text = JSON.stringify(body, readable, 2) || '';
  return text.length > MOST_BODY ? `${text.slice(0, MOST_BODY)}\n… (${text.length} letters)` : text;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function decoded(value) {
  if (value === '' || value.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(value)) return value;
  try {
    const text = UTF8.decode(Uint8Array.from(atob(value), (c) => c.charCodeAt(0)));
    return /^[^\p{C}]+$/u.test(text) ? text : value;
  } catch {
    return value; // not UTF-8
  }
}

function participantView(root, app) {
  const title = h('h3', {});
  const kind = h('p', { class: 'hint' });
  const about = facts([
    ['Process', ''], ['Status', ''],
    ['Phase', "The name of its state in the core's table (docs/states.md)."],
    ['Token', terms.token], ['Key', ''],
    ['Value', 'Bytes in the key that describe the candidate. They do not affect the order.'],
    ['Create revision', terms['create revision']],
    ['Mod revision', 'The revision at which the key was last written.'],
    ['Lease', terms.lease], ['TTL', terms.ttl],
    ['Heartbeats', 'If the leader writes none for so long, the next candidate deletes its key.'],
    ['Process ID', ''],
    ['Keeper', 'The process ID of the process that revokes the lease when the participant has died.'],
    ['Rule taken out', terms.rule],
  ]);
  const notes = h('ol', { class: 'others' });
  const reports = h('div', {}, h('h4', {}, 'What it has reported'), notes);
  const newest = button('message-previous', 'Newest message', { tip: 'Show its newest message here.', kind: 'small' });
  root.append(h('div', { class: 'inspector-head' }, title, h('div', { class: 'buttons' }, newest)), kind, about.list, reports);
  let latest = '';
  return (p) => {
    const s = p.state;
    setText(title, p.who);
    root.dataset.who = p.who;
    setText(kind, `${kindOf(s.kind).label}. ${kindOf(s.kind).tip}`);
    const life = lives[s.life];
    about.set('Process', life ? `${life.label}. ${s.life === 'running' ? '' : life.tip}`.trim() : s.life);
    about.set('Status', `${statuses[p.status].label}. ${statuses[p.status].tip}`);
    about.set('Phase', p.phase ? `${p.phase}. ${phases[p.phase] || ''}`.trim() : '');
    about.set('Token', p.token);
    const queue = app.queue();
    const place = queue ? queue.places.find((other) => other.who === p.who) : undefined;
    about.set('Key', place ? place.key : p.key);
    about.set('Value', place && place.value);
    about.set('Create revision', place && place.create);
    about.set('Mod revision', place && place.mod);
    about.set('Lease', place ? place.lease : p.lease);
    about.set('TTL', s.ttl_ms ? duration(s.ttl_ms) : '');
    about.set('Heartbeats', s.heartbeat_ms ? duration(s.heartbeat_ms) : '');
    about.set('Process ID', s.pid ? `${s.pid}${s.lives > 1 ? ` (number ${s.lives})` : ''}` : '');
    about.set('Keeper', s.keeper_pid);
    about.set('Rule taken out', s.rule);
    const last = p.notes.at(-1);
    const signature = `${p.who} ${p.notes.length} ${last ? last.at : 0} ${app.state.resets}`;
    if (signature === latest) return;
    latest = signature;
    show(reports, p.notes.length > 0);
    notes.replaceChildren(...p.notes.slice(-MOST_NOTES).reverse().map((n) => h('li', { class: 'note' },
      h('span', { class: 'row-text' }, reportText(n)),
      h('span', { class: 'row-note number' }, clockTime(n.at - app.state.begin)))));
  };
}
