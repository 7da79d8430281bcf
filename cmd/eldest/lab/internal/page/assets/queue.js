// The queue: a box for each key, in the order of the create revisions. The oldest one leads, and each
// box says for which candidate it waits.
import { actionButton, button, h, keyed, setAttr, setData, setText, show, svg, swap, term } from './dom.js';
import { headline, isStale, liveOverlap, timeLeft, waitsFor } from './headline.js';
import { nameOf, shortKey } from './names.js';
import { actions, kindOf, lives, terms } from './words.js';

const parts = new WeakMap(); // of each box: its elements

export function queuePanel(root, app) {
  const sentence = root.querySelector('.headline');
  const list = root.querySelector('.queue-list');
  const empty = root.querySelector('.queue-empty');
  const more = root.querySelector('.queue-more');
  const revision = root.querySelector('.queue-revision');
  const observer = root.querySelector('.observer'); // only in the sandbox
  const sandbox = app.info.mode === 'sandbox';
  let announced = '';

  function announce(head) {
    const text = head.tone === 'bad' ? 'Two leaders at once.' : head.leader ? `${head.leader} leads.` : 'Nobody leads.';
    if (text !== announced) app.announce(text);
    announced = text;
  }

  return {
    update(now) {
      if (app.state.seq === 0) return; // nothing is known yet
      const queue = app.queue();
      const head = headline(app.state, queue, now, sandbox);
      setText(sentence, head.text);
      setData(sentence, 'tone', head.tone);
      announce(head);
      if (observer) {
        show(observer, app.state.observer !== null);
        const report = observer.querySelector('b');
        setText(report, observed(app.state.observer));
        const why = whyUnknown(app.state.observer);
        setAttr(report, 'data-tip', why);
        setAttr(report, 'tabindex', why && 0);
        report.classList.toggle('term', why !== null);
      }
      const places = queue ? queue.places : [];
      show(empty, places.length === 0);
      show(list, places.length > 0);
      setText(revision, queue && queue.revision ? `revision ${queue.revision}` : '');
      setData(list, 'compact', places.length > 8);
      const waits = waitsFor(app.state, places);
      const first = places.findIndex((p) => !p.foreign);
      const two = liveOverlap(app.state, now);
      const rows = places.map((place, i) => ({
        two: two !== null && [two.a, two.b].includes(place.who),
        place, now, at: queue.at, waits: waits[i], oldest: i === first, position: i,
        p: app.state.participants.get(place.who || ''), sandbox,
      }));
      keyed(list, rows, (r) => `${r.p ? 'own' : 'other'} ${r.place.key}`, (r) => create(r, app), update);
      show(more, Boolean(queue) && queue.more > 0);
      if (queue && queue.more > 0) setText(more, `and ${queue.more} more`);
    },
  };
}

// observed says what the observer reports.
function observed(o) {
  if (o === null) return '';
  if (o.state === 'led') return `${o.value || shortKey(o.key)} leads with token ${o.token || 0}`;
  if (o.state === 'nobody') return 'nobody leads';
  return o.why ? 'the leader is unknown: etcd does not answer' : 'the leader is unknown';
}

// whyUnknown returns the error because of which the observer knows no leader, or null.
function whyUnknown(o) {
  return o !== null && o.state !== 'led' && o.state !== 'nobody' && o.why ? o.why : null;
}

function create(row, app) {
  const { place } = row;
  const own = app.info.mode === 'sandbox' && row.p !== undefined;
  const el = {
    crown: crown(),
    name: own
      ? h('button', { type: 'button', class: 'place-name', data: { action: 'choose', on: place.who } })
      : h('span', { class: 'place-name term', tabindex: 0 }),
    role: h('span', { class: 'place-role', data: { tip: place.foreign ? terms.foreign : undefined } }),
    kind: h('span', { class: 'place-kind' }),
    token: h('b', { class: 'number' }),
    lease: h('span', { class: 'term mono', tabindex: 0 }),
    left: h('span', { class: 'place-left number' }),
    bar: h('i'),
    waits: h('p', { class: 'place-waits' }),
  };
  const buttons = buttonsOf(row, app);
  el.buttons = buttons;
  if (own) {
    const make = (what, kind) => actionButton(what, place.who, { on: place.who }, { kind });
    Object.assign(el, { kill: make('kill', 'danger'), restart: make('restart', ''), stop: make('stop', ''), go: make('continue', '') });
    el.own = h('div', { class: 'buttons' }, el.kill, el.restart, el.stop, el.go);
  }
  const node = h('li', { class: 'place' },
    arrow(),
    h('div', { class: 'place-head' }, el.crown, el.name, el.role),
    h('p', { class: 'place-line' }, term('token', terms.token), ' ', el.token, el.kind),
    h('p', { class: 'place-line' }, term('lease', terms.lease), ' ', el.lease, el.left),
    h('div', { class: 'place-bar', 'aria-hidden': 'true' }, el.bar),
    el.waits,
    el.own || buttons);
  parts.set(node, el);
  return node;
}

// buttonsOf returns what can be done to a key: in the sandbox, only to one of no participant.
function buttonsOf({ p }, app) {
  if (app.info.mode === 'cluster' && app.info.write) {
    return h('div', { class: 'buttons', data: { of: 'candidate' } },
      button('transfer-place', 'Transfer to', { tip: actions.transfer.tip, kind: 'small' }),
      button('evict', 'Evict', { tip: actions.evict.tip, kind: 'small danger' }));
  }
  if (app.info.mode === 'sandbox' && p === undefined) {
    return h('div', { class: 'buttons' },
      button('delete-key', 'Delete this key', { tip: 'An operator deletes this key in etcd.', kind: 'small' }));
  }
  return null;
}

function update(node, { place, now, at, waits, oldest, position, p, two, sandbox }) {
  const el = parts.get(node);
  const life = p ? p.state.life : '';
  const stale = p !== undefined && isStale(p, place);
  const leads = oldest && !stale && (p ? p.status === 'leads' && life !== 'dead' : !sandbox);
  const halted = life === 'dead' || life === 'stopped';
  const suspended = p !== undefined && p.status === 'suspended';
  const role = place.foreign ? 'not a candidate' : sandbox && !p ? 'no owner' : stale ? 'old key' : halted ? lives[life].label : leads ? 'leads' : suspended ? 'suspended'
    : oldest ? 'oldest key' : '';
  setData(node, 'who', nameOf(place));
  setData(node, 'key', place.key);
  setData(node, 'token', place.create);
  setData(node, 'leads', leads);
  setData(node, 'two', two);
  setData(node, 'tone', place.foreign ? 'foreign' : stale ? 'dead' : halted ? life : leads ? 'leads' : suspended ? 'suspended' : 'queued');
  setText(el.name, place.foreign ? shortKey(place.key) : nameOf(place));
  const written = place.mod > place.create ? `\nLast written at revision ${place.mod}` : '';
  setAttr(el.name, 'data-tip', `Key ${place.key}${place.value ? `\nValue ${place.value}` : ''}${written}`);
  show(el.crown, leads);
  setText(el.role, role);
  setText(el.kind, p ? kindOf(p.state.kind).short : '');
  show(el.kind, Boolean(p));
  setText(el.token, place.create);
  const lease = String(place.lease || '');
  const none = lease === '' || /^0+$/.test(lease);
  setText(el.lease, none ? 'none' : lease.length > 4 ? `…${lease.slice(-4)}` : lease);
  const leaseTip = none ? 'This key has no lease: etcd never deletes it by itself.' : `Lease ${lease}. ${terms.lease}`;
  setAttr(el.lease, 'data-tip', leaseTip);
  const left = timeLeft(place, at, now);
  // The time left of an existing cluster's leases is known in whole seconds.
  setText(el.left, none || left < 0 ? '' : `${(left / 1_000).toFixed(p ? 1 : 0)} s left`);
  const part = place.granted_ms > 0 && left >= 0 ? Math.min(1, left / place.granted_ms) : 0;
  const scale = `scaleX(${part.toFixed(3)})`;
  if (el.bar.style.transform !== scale) el.bar.style.transform = scale;
  setData(node, 'low', part > 0 && part < 0.25);
  const text = place.foreign ? 'ignored by Eldest'
    : waits === 'all' ? 'watches all keys'
    : waits ? `waits for ${waits}`
    : oldest ? 'its key is the oldest' : '';
  setText(el.waits, text);
  setData(node, 'waits', waits);
  setAttr(node, 'data-first', position === 0);
  setAttr(node, 'aria-label', `${nameOf(place)}, ${role || 'waits'}, token ${place.create}${text ? `, ${text}` : ''}`);
  if (el.own) {
    show(el.own, !stale); // they are of the new process
    swap(el.restart, el.kill, life === 'dead');
    swap(el.go, el.stop, life === 'stopped');
    el.stop.disabled = life === 'dead';
  }
  if (!el.buttons) return;
  show(el.buttons, !(place.foreign && el.buttons.dataset.of === 'candidate'));
  for (const b of el.buttons.children) {
    setData(b, 'key', place.key);
    setAttr(b, 'aria-label', `${b.textContent}: ${nameOf(place)}`);
  }
}

function crown() {
  return svg('svg', { class: 'crown', viewBox: '0 0 20 16', 'aria-hidden': 'true' },
    svg('path', { d: 'M2 14h16l1-10-5 4-4-7-4 7-5-4z' }));
}

function arrow() {
  return svg('svg', { class: 'place-arrow', viewBox: '0 0 28 12', 'aria-hidden': 'true' },
    svg('path', { d: 'M27 6H3M8 1L3 6l5 5', fill: 'none' }));
}

// placeActions handles the buttons of the boxes of an existing cluster. They say what will be done,
// and ask.
export function placeActions(app) {
  function chosen(el) {
    const queue = app.queue();
    const places = queue ? queue.places : [];
    const place = places.find((p) => p.key === el.dataset.key);
    if (!place) {
      app.say('This candidate has left the queue.', 'bad');
      return null;
    }
    const candidates = places.filter((p) => !p.foreign);
    return { queue, place, candidates, index: candidates.indexOf(place) };
  }
  const facts = ({ queue, place }) => [
    ['Election', queue.election], ['Key', place.key], ['Token', String(place.create)], ['Value', place.value || '(none)'],
  ];
  app.handle({
    evict: async (el) => {
      const c = chosen(el);
      if (!c) return;
      const led = c.index === 0;
      const next = c.candidates[1];
      const after = !led ? 'The leader does not change.'
        : next ? `After that ${nameOf(next)} leads.` : 'After that no candidate leads: the queue is empty.';
      const yes = await app.confirm({
        title: led ? 'Remove the leader?' : `Remove candidate number ${c.index + 1}?`, facts: facts(c),
        text: `Its key is deleted, and it is notified at once. ${after} `
          + 'If it has registered again in the meantime, nothing is removed.',
        yes: 'Evict',
      });
      if (yes) app.act({ do: 'evict', election: c.queue.election, key: c.place.key, token: c.place.create }, el);
    },
    'transfer-place': async (el) => {
      const c = chosen(el);
      if (!c) return;
      if (c.index === 0) {
        app.say(`${nameOf(c.place)} leads already.`, 'bad');
        return;
      }
      const others = c.index === 1 ? 'The others keep their positions.'
        : 'The candidates before it requeue first, each with a new and greater token.';
      const leader = `${nameOf(c.candidates[0])} (token ${c.candidates[0].create})`;
      const yes = await app.confirm({
        title: `Transfer the leadership to ${nameOf(c.place)}?`, facts: facts(c),
        text: `The leader, ${leader}, is asked to stop its work and to delete its key. ${others} `
          + 'No key is deleted from outside. If a candidate that has to move takes no part, the transfer is refused.',
        yes: 'Transfer',
      });
      if (yes) app.act({ do: 'transfer', election: c.queue.election, key: c.place.key, token: c.place.create }, el);
    },
  });
}

