// The messages that wait in the page: each can be released or dropped, in any order, with the mouse
// or with the keyboard (arrow keys, r and d).
import { button, h, keyed, setAttr, setData, setText, show } from './dom.js';
import { actions, duration } from './words.js';

const MOST = 200; // rows
const parts = new WeakMap();

export function heldPanel(root, app) {
  const list = root.querySelector('.held-list');
  const empty = root.querySelector('.held-empty');
  const all = root.querySelector('.held-all');
  const count = root.querySelector('.held-count');
  let position = 0; // of the row that has the focus, or had it last

  const rows = () => [...list.children];

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
      show(empty, held.length === 0);
      show(all, held.length > 0);
      show(list, held.length > 0);
      setText(count, held.length > 0 ? String(held.length) : '');
      setData(root, 'held', held.length);
      const inside = list.contains(document.activeElement);
      keyed(list, shown, (m) => m.id, create, (row, m) => update(row, m, now));
      const present = rows();
      // The row with the focus has gone: the one in its place has it now.
      if (inside && present.length > 0 && !present.some((row) => row.contains(document.activeElement))) focus(position);
      if (!present.some((row) => row.tabIndex === 0) && present.length > 0) present[0].tabIndex = 0;
    },
  };
}

function create(m) {
  const data = { message: m.id, on: m.who };
  const el = {
    route: h('b', {}), what: h('span', { class: 'held-what' }), text: h('span', { class: 'row-text' }), since: h('span', { class: 'row-note number' }),
  };
  const choose = { type: 'button', class: 'row', data: { action: 'choose-message', message: m.id } };
  const make = (what, kind) => button(what, actions[what].label, {
    name: `${actions[what].label} message ${m.id} of ${m.who}`, tip: actions[what].tip, data, kind: `small ${kind}`,
  });
  const row = h('li', { class: 'held-row', tabindex: -1, data, 'aria-keyshortcuts': 'r d' },
    h('button', choose, el.route, el.what, el.since, el.text),
    h('div', { class: 'buttons' }, make('release', 'primary'), make('drop', 'danger')));
  parts.set(row, el);
  return row;
}

function update(row, m, now) {
  const el = parts.get(row);
  setText(el.route, m.kind === 'request' ? `${m.who} → etcd` : `etcd → ${m.who}`);
  setText(el.what, `${m.method} ${m.kind}`);
  setText(el.text, m.text);
  setText(el.since, duration(now - (m.heldAt ?? m.at)));
  setAttr(row, 'aria-label', `${m.method} ${m.kind} of ${m.who}. r releases it, d drops it.`);
}
