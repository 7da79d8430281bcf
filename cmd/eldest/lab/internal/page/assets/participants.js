// A card for each participant: its state, the faults that are active, and what can be done to it. The
// four main buttons are visible; the rest is below "More", and is made when that is opened first.
import { actionButton, h, keyed, setAttr, setData, setText, show, swap, term } from './dom.js';
import { keylessSince, shown } from './state.js';
import { believes } from './beliefs.js';
import { liveOverlap } from './headline.js';
import { actions, duration, kindOf, lives, phases, statuses, terms, ways } from './words.js';

const parts = new WeakMap(); // of each card: its elements

// BREAKPOINTS are the kinds of messages that are offered: those of an election.
const BREAKPOINTS = [
  'Txn request', 'Txn answer', 'Range request', 'Range answer', 'Put request', 'Put answer',
  'DeleteRange request', 'DeleteRange answer', 'Watch request', 'Watch answer', 'Watch event',
  'LeaseGrant request', 'LeaseGrant answer', 'LeaseKeepAlive request', 'LeaseKeepAlive answer',
  'LeaseRevoke request', 'LeaseRevoke answer', 'LeaseTimeToLive request', 'LeaseTimeToLive answer',
];

// PLAIN are the actions that need nothing but the participant.
const PLAIN = [
  'resign', 'leave', 'kill', 'restart', 'stop', 'continue', 'heal', 'lose-reply', 'revoke-lease',
  'transfer', 'hold', 'unhold',
];

export function participantsPanel(root, app) {
  const list = root.querySelector('.cards');
  const empty = root.querySelector('.cards-empty');
  const count = root.querySelector('.cards-count');
  adding(root, app);

  for (const what of PLAIN) app.handle({ [what]: (el) => app.act({ do: what, on: el.dataset.on }, el) });
  app.handle({
    // The key may be one that belongs to no participant.
    'delete-key': (el) => {
      const { on, key } = el.dataset;
      app.act(on ? { do: 'delete-key', on } : { do: 'delete-key', key }, el);
    },
  });
  app.handle({
    choose: (el) => app.choose({ participant: el.dataset.on, message: 0 }),
    cut: (el) => app.act({ do: 'cut', on: el.dataset.on, way: el.dataset.way || 'both' }, el),
    delay: (el) => {
      const input = el.closest('.card').querySelector('[data-field="delay"]');
      const ms = Number(input.value);
      if (!Number.isFinite(ms) || ms < 0) {
        app.say('The delay has to be a number of milliseconds.', 'bad');
        return;
      }
      app.act({ do: 'delay', on: el.dataset.on, ms }, el);
    },
    breakpoint: (el) => {
      const set = el.closest('fieldset');
      const chosen = [...set.querySelectorAll('input:checked')].map((i) => i.value);
      app.act({ do: 'breakpoint', on: el.dataset.on, breakpoints: chosen }, set, { inTurn: true });
    },
    rule: (el) => {
      const select = el.closest('.card').querySelector('[data-field="rule"]');
      app.act({ do: 'rule', on: el.dataset.on, rule: select.value }, el);
    },
  });

  return {
    update(now) {
      const all = shown(app.state);
      show(empty, all.length === 0);
      setText(count, all.length > 0 ? String(all.length) : '');
      setData(list, 'compact', all.length > 12);
      const two = liveOverlap(app.state, now);
      keyed(list, all, (p) => p.who, (p) => create(p, app), (node, p) => {
        update(node, p, app, now);
        setData(node, 'two', two !== null && [two.a, two.b].includes(p.who));
      });
    },
  };
}

// adding fills the form with which a participant is added.
function adding(root, app) {
  const kind = root.querySelector('[data-field="kind"]');
  const rule = root.querySelector('[data-field="without"]');
  const label = root.querySelector('.add-rule');
  const word = root.querySelector('.add-kind');
  for (const k of app.info.kinds || []) kind.append(h('option', { value: k }, kindOf(k).label));
  const offer = () => {
    setData(word, 'tip', kindOf(kind.value).tip);
    fillRules(rule, app, kind.value, 'all rules');
    show(label, rule.options.length > 1);
  };
  kind.addEventListener('change', offer);
  offer();
  app.handle({
    add: (el) => app.act({ do: 'add', kind: kind.value, ...(rule.value ? { rule: rule.value } : {}) }, el),
  });
}

function fillRules(select, app, kind, all) {
  const rules = (app.info.rules || []).filter((r) => (r.kinds || []).includes(kind));
  const options = rules.map((r) => h('option', { value: r.name }, `without: ${r.name}`));
  select.replaceChildren(h('option', { value: '' }, all), ...options);
}

function make(what, who, { data, ...more } = {}) {
  return actionButton(what, who, { on: who, ...data }, more);
}

function create(p, app) {
  const { who } = p;
  const el = {
    app, who, more: null,
    name: h('button', {
      type: 'button', class: 'card-name', 'aria-pressed': 'false',
      data: { action: 'choose', on: who, tip: 'Show it in the inspector, and mark its lane.' },
    }, who),
    kind: term('', ''),
    status: h('span', { class: 'pill' }),
    phase: term('', ''),
    belief: h('span', { class: 'belief term', tabindex: 0, data: { tip: terms.belief } }, 'sure that it leads'),
    token: h('span', { class: 'number' }),
    chips: h('ul', { class: 'chips', 'aria-label': `Faults of ${who}` }),
    resign: make('resign', who),
    stop: make('stop', who), go: make('continue', who),
    kill: make('kill', who, { kind: 'danger' }), restart: make('restart', who),
    cut: make('cut', who, { data: { way: 'both' } }), heal: make('heal', who, { kind: 'mending' }),
  };
  const body = h('div', { class: 'more-body' });
  const summary = h('summary', { data: { action: 'more', on: who }, 'aria-label': `More for ${who}` }, 'More');
  const details = h('details', { class: 'more' }, summary, body);
  details.addEventListener('toggle', () => {
    if (!details.open || el.more) return;
    el.more = more(p, app);
    body.append(...el.more.nodes);
    updateMore(el, app.state.participants.get(who) || p);
  });
  const node = h('li', { class: 'card', data: { who } },
    h('div', { class: 'card-head' }, el.name, el.kind, el.status),
    h('p', { class: 'card-line' }, h('span', { class: 'card-phase' }, el.phase), el.token, el.belief),
    el.chips,
    h('div', { class: 'buttons' }, el.resign, el.stop, el.go, el.kill, el.restart, el.cut, el.heal),
    details);
  el.phaseLine = node.querySelector('.card-phase');
  parts.set(node, el);
  return node;
}

// more makes what is below "More".
function more(p, app) {
  const { who } = p;
  const m = {
    hold: make('hold', who), unhold: make('unhold', who, { kind: 'mending' }),
    boxes: BREAKPOINTS.map((kind) => h('input', {
      type: 'checkbox', value: kind, data: { action: 'breakpoint', on: who, kind },
    })),
    delay: h('input', {
      type: 'number', min: 0, max: 60_000, step: 50, value: 500, data: { field: 'delay', on: who },
      'aria-label': `Delay of the messages of ${who}, in milliseconds`,
    }),
    rule: h('select', { data: { field: 'rule', on: who }, 'aria-label': `Rule that is taken out of ${who}` }),
    ruleText: h('p', { class: 'hint' }),
    kind: null, // of which the rules are offered
    out: null, // the rule that was taken out when the list was set
  };
  m.points = h('fieldset', { class: 'breakpoints', data: { on: who } },
    h('legend', {}, term('Breakpoints', terms.breakpoint)),
    ...m.boxes.map((box) => h('label', { class: 'check' }, box, box.value)));
  m.ruleGroup = group('Code', m.rule, make('rule', who, { label: 'Restart with this' }), m.ruleText);
  m.nodes = [
    group('Leadership', make('transfer', who), make('leave', who)),
    group('Cut off', ...Object.keys(cutTips).map((way) => make('cut', who, {
      label: ways[way], name: `Cut off ${who}: ${ways[way]}`, tip: cutTips[way], data: { way },
    }))),
    group('Network', h('label', { class: 'field' }, m.delay, ' ms'), make('delay', who), make('lose-reply', who),
      make('heal', who)),
    group('In etcd', make('delete-key', who), make('revoke-lease', who)),
    group('Messages', m.hold, m.unhold),
    m.points,
    m.ruleGroup,
  ];
  return m;
}

const cutTips = {
  both: 'What it sends and what is sent to it is lost. Its connection stays open.',
  requests: 'What it sends is lost. What etcd sends to it arrives.',
  replies: 'What it sends arrives. What etcd sends to it is lost.',
};

function group(title, ...children) {
  return h('div', { class: 'group', role: 'group', 'aria-label': title },
    h('span', { class: 'group-title' }, title), h('div', { class: 'buttons' }, ...children));
}

// faultsOf lists the faults of a participant that are active.
function faultsOf(s) {
  const all = [];
  if (s.cut) all.push({ id: 'cut', text: `cut off: ${ways[s.cut] || s.cut}`, tip: cutTips[s.cut] || '' });
  if (s.delay_ms) all.push({ id: 'delay', text: `delay ${duration(s.delay_ms)}`, tip: actions.delay.tip });
  if (s.lose_reply) all.push({ id: 'lose-reply', text: 'loses the next reply', tip: actions['lose-reply'].tip });
  if (s.hold) all.push({ id: 'hold', text: 'holds messages', tip: actions.hold.tip });
  const points = s.breakpoints || [];
  if (points.length > 0) all.push({ id: 'breakpoints', text: `breakpoints: ${points.join(', ')}`, tip: terms.breakpoint });
  if (s.rule) all.push({ id: 'rule', text: `without: ${s.rule}`, tip: terms.rule });
  return all;
}

function update(node, p, app, now) {
  const el = parts.get(node);
  const s = p.state;
  const status = statuses[p.status];
  const life = lives[s.life] || lives.starting;
  const halted = s.life !== 'running';
  const chosen = app.choice.participant === p.who;
  setData(node, 'status', p.status);
  setData(node, 'life', s.life);
  setData(node, 'phase', p.phase);
  setData(node, 'lives', s.lives);
  setData(node, 'chosen', chosen);
  setData(node, 'tone', halted ? s.life : p.status);
  setAttr(el.name, 'aria-pressed', String(chosen));
  const kind = kindOf(s.kind);
  setText(el.kind, kind.label);
  setAttr(el.kind, 'data-tip', kind.tip);
  const sure = believes(p, now);
  const { label, tip } = halted ? life : unusual(p, sure, now) || status;
  setText(el.status, label);
  setAttr(el.status, 'data-tip', tip);
  show(el.phaseLine, p.phase !== '' && s.life !== 'dead');
  setText(el.phase, p.phase);
  setAttr(el.phase, 'data-tip', `Phase ${p.phase}${phases[p.phase] ? `: ${phases[p.phase]}` : '.'}`);
  setText(el.token, p.token > 0 ? `token ${p.token}` : '');
  show(el.belief, sure);
  setData(node, 'believes', sure);
  const faults = faultsOf(s);
  show(el.chips, faults.length > 0);
  keyed(el.chips, faults, (f) => f.id, () => h('li', { class: 'chip' }), (li, f) => {
    setText(li, f.text);
    setData(li, 'fault', f.id);
    setData(li, 'tip', f.tip);
  });
  swap(el.go, el.stop, s.life === 'stopped');
  swap(el.restart, el.kill, s.life === 'dead');
  el.stop.disabled = el.resign.disabled = s.life === 'dead';
  swap(el.heal, el.cut, Boolean(s.cut || s.delay_ms || s.lose_reply));
  if (el.more) updateMore(el, p);
}

// unusual returns the label and the tooltip of a status in which the participant is wrong about
// itself, else null.
function unusual(p, sure, now) {
  if (keylessSince(p, now) !== null) {
    return { label: 'waits, no key', tip: 'It believes that it is in the queue, but etcd has no key of it.' };
  }
  if (p.status !== 'out' || !sure) return null;
  const tip = p.unlisted === null ? 'It has passed its deadline, and is still sure that it leads.'
    : 'etcd has no key of it any more, and it does not know that.';
  return { label: statuses.out.label, tip };
}

function updateMore(el, p) {
  const { more: m, app } = el;
  const s = p.state;
  const focused = document.activeElement;
  show(m.hold, !s.hold);
  show(m.unhold, Boolean(s.hold) || (s.breakpoints || []).length > 0);
  if (focused === m.hold && m.hold.hidden) m.unhold.focus({ preventScroll: true });
  if (focused === m.unhold && m.unhold.hidden) m.hold.focus({ preventScroll: true });
  // What the user is changing just now is left alone.
  if (!m.points.hasAttribute('aria-busy')) {
    const on = s.breakpoints || [];
    for (const box of m.boxes) if (box.checked !== on.includes(box.value)) box.checked = on.includes(box.value);
  }
  if (m.kind !== s.kind) {
    m.kind = s.kind;
    m.out = null;
    fillRules(m.rule, app, s.kind, 'all rules');
  }
  show(m.ruleGroup, m.rule.options.length > 1);
  if (m.out !== (s.rule || '') && focused !== m.rule) m.rule.value = m.out = s.rule || '';
  const rule = (app.info.rules || []).find((r) => r.name === s.rule);
  setText(m.ruleText, rule ? rule.text : '');
}
