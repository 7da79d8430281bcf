// The messages that wait in the page: each can be released or dropped, in any order, with the mouse
// or with the keyboard (arrow keys, r and d).
import { actionButton, h, keyed, setAttr, setData, setText, show } from './dom.js';
import { duration } from './words.js';

const MOST = 200; // rows
const GONE_MS = 5_000; // how long a message is shown that its sender has given up
const DECIDED_MS = 1_000; // between the loss of a message and the action that has dropped or released it
const parts = new WeakMap();

export function heldPanel(root, app) {
  const list = root.querySelector('.held-list');
  const empty = root.querySelector('.held-empty');
  const releaseAll = root.querySelector('.held-all');
  const count = root.querySelector('.held-count');
  const title = root.querySelector('#held-title');
  let position = 0; // of the row that has the focus, or had it last

  const rows = () => [...list.querySelectorAll('.held-row')];

  function focus(i) {
    const all = rows();
    if (all.length === 0) return;
    position = Math.max(0, Math.min(i, all.length - 1));
    all.forEach((row, j) => { row.tabIndex = j === position ? 0 : -1; });
    all[position].focus();
    all[position].scrollIntoView({ block: 'nearest' });
  }

  function act(what, el) {
    const id = Number(el.dataset.message);
    return app.act({ do: what, on: el.dataset.on, message: id }, el);
  }

  app.handle({
    release: (el) => act('release', el),
    drop: (el) => act('drop', el),
    'release-all': async (el) => {
      for (const m of [...app.state.held.values()].slice(0, MOST)) {
        if (app.state.held.has(m.id) && !(await app.act({ do: 'release', on: m.who, message: m.id }, el))) break;
      }
    },
  });

  list.addEventListener('focusin', (e) => {
    const i = rows().indexOf(e.target.closest('.held-row'));
    if (i < 0) return;
    position = i;
    rows().forEach((row, j) => { row.tabIndex = j === i ? 0 : -1; });
  });
  list.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const row = e.target.closest('.held-row');
    const keys = {
      ArrowDown: () => focus(position + 1), ArrowUp: () => focus(position - 1),
      Home: () => focus(0), End: () => focus(Infinity),
      r: () => row && act('release', row), d: () => row && act('drop', row),
      Enter: () => row && e.target === row && app.choose({ message: Number(row.dataset.message) }),
    };
    if (!keys[e.key] || (e.key === 'Enter' && e.target !== row)) return;
    e.preventDefault();
    e.stopPropagation();
    keys[e.key]();
  });

  return {
    update(now) {
      const held = [...app.state.held.values()];
      const shown = held.slice(0, MOST);
      const inside = list.contains(document.activeElement);
      const gone = app.state.gone.filter((m) => now - m.end < GONE_MS && givenUp(app.state, m));
      const all = [...shown.map((m) => ({ m })), ...gone.map((m) => ({ m, gone: true }))];
      all.sort((a, b) => a.m.heldAt - b.m.heldAt);
      show(empty, all.length === 0);
      show(releaseAll, held.length > 0);
      show(list, all.length > 0);
      setText(count, held.length > 0 ? String(held.length) : '');
      setData(root, 'held', held.length);
      keyed(list, all, (r) => `${r.gone ? 'gone' : 'held'} ${r.m.id}`,
        (r) => (r.gone ? createGone(r.m) : create(r.m, app.state)), (row, r) => !r.gone && update(row, r.m, now));
      const present = rows();
      // The row with the focus has gone: the one in its place has it now.
      if (inside && present.length > 0 && !present.some((row) => row.contains(document.activeElement))) focus(position);
      if (inside && present.length === 0) title.focus({ preventScroll: true });
      if (!present.some((row) => row.tabIndex === 0) && present.length > 0) present[0].tabIndex = 0;
    },
  };
}

// givenUp reports whether a message was lost because its sender waits for it no more: nobody has
// dropped it, and nothing else has happened to its sender. One that was released may be lost too, as the
// next reply that its sender loses.
function givenUp(state, m) {
  const p = state.participants.get(m.who);
  if (!p || p.state.life !== 'running' || p.state.cut || p.ranSince > m.at) return false;
  return !state.actions.some(({ at, action }) => (action.do === 'drop' || action.do === 'release')
    && (action.message ? action.message === m.id : action.on === m.who && Math.abs(at - m.end) < DECIDED_MS));
}

// askedBy returns the text of the request to which a message is the answer. That of a watch is not
// known: its requests are answered in any order.
function askedBy(state, m) {
  if (m.kind !== 'answer' || !m.call || m.method === 'Watch') return '';
  const request = state.messages.findLast((o) => o.kind === 'request' && o.call === m.call && o.who === m.who && o.at <= m.at);
  return request ? request.text : '';
}

const routeOf = (m) => (m.kind === 'request' ? `${m.who} → etcd` : `etcd → ${m.who}`);

function createGone(m) {
  return h('li', { class: 'held-gone' },
    h('b', {}, routeOf(m)), h('span', { class: 'held-what' }, `${m.method} ${m.kind}`),
    h('span', { class: 'row-note' }, `given up by ${m.who}`), h('span', { class: 'row-text' }, m.text));
}

function create(m, state) {
  const asked = askedBy(state, m);
  const data = { message: m.id, on: m.who };
  const el = {
    route: h('b', {}), what: h('span', { class: 'held-what' }), text: h('span', { class: 'row-text' }), since: h('span', { class: 'row-note number' }),
  };
  const choose = { type: 'button', class: 'row', data: { action: 'choose-message', message: m.id } };
  const make = (what, kind) => actionButton(what, `message ${m.id} of ${m.who}`, data, { kind });
  const row = h('li', { class: 'held-row', tabindex: -1, data, 'aria-keyshortcuts': 'r d' },
    h('button', choose, el.route, el.what, el.since, el.text, asked !== '' && h('span', { class: 'row-text held-asked' }, `to: ${asked}`)),
    h('div', { class: 'buttons' }, make('release', 'primary'), make('drop', 'danger')));
  parts.set(row, el);
  return row;
}

function update(row, m, now) {
  const el = parts.get(row);
  setText(el.route, routeOf(m));
  setText(el.what, `${m.method} ${m.kind}`);
  setText(el.text, m.text);
  setText(el.since, duration(now - (m.heldAt ?? m.at)));
  setAttr(row, 'aria-label', `${m.method} ${m.kind} of ${m.who}. r releases it, d drops it.`);
}
