// The members of etcd: which one leads, and what can be done to them.
import { actionButton, h, keyed, setAttr, setData, setText, swap, term } from './dom.js';
import { memberStates, terms } from './words.js';

const parts = new WeakMap();

export function membersPanel(root, app) {
  const list = root.querySelector('.members-list');
  for (const what of ['member-kill', 'member-stop', 'member-continue', 'member-restart', 'move-leader']) {
    app.handle({ [what]: (el) => app.act({ do: what, member: Number(el.dataset.member) }, el) });
  }
  app.handle({ compact: (el) => app.act({ do: 'compact' }, el) });
  return {
    update() {
      const rows = app.state.members.map((member, index) => ({ member, index }));
      keyed(list, rows, (r) => r.member.name || r.index, (r) => create(r, app), update);
    },
  };
}

function create({ member, index }, app) {
  const el = {
    state: h('span', { class: 'pill term', tabindex: 0 }),
    revision: h('b', { class: 'number' }),
    term: h('b', { class: 'number' }),
  };
  const make = (what, kind) => actionButton(what, `member ${member.name}`, { member: index }, { kind });
  if (app.info.mode === 'sandbox') {
    Object.assign(el, {
      stop: make('member-stop'), go: make('member-continue'), kill: make('member-kill', 'danger'),
      restart: make('member-restart'), move: make('move-leader'),
    });
  }
  const node = h('li', { class: 'member', data: { member: index, name: member.name } },
    h('div', { class: 'member-head' }, h('b', {}, member.name), el.state),
    h('p', { class: 'place-line' },
      term('revision', terms.revision), ' ', el.revision, ' · ', term('Raft term', terms['raft term']), ' ', el.term),
    el.stop ? h('div', { class: 'buttons' }, el.stop, el.go, el.kill, el.restart, el.move) : null);
  parts.set(node, el);
  return node;
}

function update(node, { member }) {
  const el = parts.get(node);
  setData(node, 'state', member.state);
  setText(el.state, member.state);
  setAttr(el.state, 'data-tip', memberStates[member.state] || 'Its state is not known.');
  setText(el.revision, member.revision || '–');
  setText(el.term, member.raft_term || '–');
  if (member.endpoint) setAttr(node, 'data-endpoint', member.endpoint);
  if (!el.stop) return;
  swap(el.go, el.stop, member.state === 'stopped');
  swap(el.restart, el.kill, member.state === 'down');
}
