// An existing cluster: the list of its elections, and the tenures of the chosen one since this page
// watches.
import { h, keyed, setAttr, setText, show } from './dom.js';
import { natural } from './names.js';
import { clockTime, duration } from './words.js';

const MOST = 300; // rows
const MOST_TENURES = 100;

export function electionsPanel(root, app) {
  const list = root.querySelector('.elections-list');
  const search = root.querySelector('[data-field="search"]');
  const empty = root.querySelector('.elections-empty');
  const count = root.querySelector('.elections-count');
  app.handle({ election: (el) => app.choose({ election: el.dataset.election }) });
  search.addEventListener('input', () => update());

  let latest = '';

  function update() {
    const signature = `${app.state.version} ${app.choice.election} ${search.value}`;
    if (signature === latest) return;
    latest = signature;
    const all = electionsOf(app.state);
    if (!app.choice.election && all.length > 0) app.choose({ election: all[0].name });
    const wanted = search.value.trim().toLowerCase();
    const found = all.filter((e) => `${e.name} ${e.leader || ''}`.toLowerCase().includes(wanted));
    setText(count, found.length > MOST ? `the first ${MOST} of ${found.length}` : `${found.length} of ${all.length}`);
    show(count, all.length > 0);
    setText(empty, all.length === 0 ? 'This cluster has no election yet.' : 'No election has this name.');
    show(empty, found.length === 0);
    keyed(list, found.slice(0, MOST), (e) => e.name, create, (li, e) => {
      const b = li.firstElementChild;
      const [, leader, candidates] = b.children;
      setAttr(b, 'aria-pressed', String(e.name === app.choice.election));
      setText(leader, e.token ? `${e.leader || 'a candidate'}, token ${e.token}` : 'nobody leads');
      setText(candidates, e.candidates === 1 ? '1 candidate' : `${e.candidates || 0} candidates`);
    });
  }
  return { update };
}

// electionsOf returns the elections that are known, by name: from the list, or from the queues.
function electionsOf(state) {
  const all = new Map();
  for (const q of state.queues.values()) {
    const candidates = q.places.filter((p) => !p.foreign);
    const first = candidates[0];
    all.set(q.election, {
      name: q.election, candidates: candidates.length + q.more,
      leader: first ? first.who || first.value : '', token: first ? first.create : 0,
    });
  }
  for (const e of state.elections) all.set(e.name, e);
  return [...all.values()].sort((a, b) => natural(a.name, b.name));
}

function create(e) {
  return h('li', {}, h('button', {
    type: 'button', class: 'row election', 'aria-pressed': 'false', data: { action: 'election', election: e.name },
  },
  h('b', { class: 'row-text' }, e.name),
  h('span', { class: 'row-text election-leader' }),
  h('span', { class: 'row-note' })));
}

function createRow() {
  const number = () => h('td', { class: 'number' });
  return h('tr', {}, number(), h('td', {}), number(), number());
}

export function tenuresPanel(root, app) {
  const body = root.querySelector('tbody');
  const empty = root.querySelector('.tenures-empty');
  return {
    update(now) {
      const all = app.state.tenures.get(app.choice.election) || [];
      show(empty, all.length === 0);
      const rows = all.slice(-MOST_TENURES).reverse();
      keyed(body, rows, (t) => `${t.token} ${t.from}`, createRow, (tr, t) => {
        const [token, who, from, took] = tr.children;
        setText(token, t.token);
        setText(who, t.who);
        setText(from, clockTime(t.from - app.state.begin));
        setText(took, `${duration((t.to ?? now) - t.from)}${t.to === null ? ' so far' : ''}`);
      });
    },
  };
}
