// Building and changing elements. Every text is set as text: nothing that comes from etcd can become
// markup.
import { actions } from './words.js';

// h makes an element. Attributes with false, null and undefined are left out; data is the dataset.
export function h(name, attributes = {}, ...children) {
  const el = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key === 'data') {
      for (const [k, v] of Object.entries(value)) if (v !== null && v !== undefined) el.dataset[k] = String(v);
    } else {
      el.setAttribute(key, value === true ? '' : String(value));
    }
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) el.append(child);
  }
  return el;
}

// svg makes an element of SVG.
export function svg(name, attributes = {}, ...children) {
  const el = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) el.setAttribute(key, String(value));
  el.append(...children);
  return el;
}

// setText, setAttr and show change an element only if there is something to change.
export function setText(el, text) {
  const value = String(text);
  if (el.textContent !== value) el.textContent = value;
}

export function setAttr(el, name, value) {
  if (value === null || value === undefined || value === false) {
    if (el.hasAttribute(name)) el.removeAttribute(name);
    return;
  }
  const text = value === true ? '' : String(value);
  if (el.getAttribute(name) !== text) el.setAttribute(name, text);
}

export function setData(el, name, value) {
  const text = String(value);
  if (el.dataset[name] !== text) el.dataset[name] = text;
}

export function show(el, visible) {
  // The attribute, because elements of SVG have no such property.
  if (el.hasAttribute('hidden') === visible) el.toggleAttribute('hidden', !visible);
}

// swap shows one of two buttons. The focus goes from one to the other.
export function swap(first, second, showFirst) {
  const [on, off] = showFirst ? [first, second] : [second, first];
  if (!on.hidden && off.hidden) return;
  const focused = document.activeElement === off;
  on.hidden = false;
  off.hidden = true;
  if (focused) on.focus({ preventScroll: true });
}

const kept = new WeakMap(); // of each parent: its elements by key

// keyed makes the children of parent those of items, in their order. An element is made once for
// each key, and updated after that, so that the focus stays where it is. If the focused element is
// removed, the parent is focused.
export function keyed(parent, items, keyOf, create, update) {
  let nodes = kept.get(parent);
  if (!nodes) kept.set(parent, (nodes = new Map()));
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const wanted = new Map();
  for (const item of items) wanted.set(String(keyOf(item)), item);
  for (const [key, node] of nodes) {
    if (wanted.has(key)) continue;
    nodes.delete(key);
    node.remove();
  }
  let next = parent.firstElementChild;
  for (const [key, item] of wanted) {
    let node = nodes.get(key);
    if (!node) nodes.set(key, (node = create(item)));
    if (node === next) next = next.nextElementSibling;
    else parent.insertBefore(node, next);
    update(node, item);
  }
  if (!focused || focused === document.activeElement) return;
  if (parent.contains(focused)) {
    focused.focus({ preventScroll: true });
  } else {
    parent.tabIndex = -1;
    parent.focus({ preventScroll: true });
  }
}

// term makes an explained word: its sentence is shown on hover and on focus (tips.js).
export function term(text, tip) {
  return h('span', { class: 'term', tabindex: 0, data: { tip } }, text);
}

// button makes a button that does an action (app.js finds it by data-action).
export function button(action, label, { name, tip, data = {}, kind = '' } = {}) {
  return h('button', {
    type: 'button', class: `button ${kind}`.trim(), 'aria-label': name, data: { action, tip, ...data },
  }, label);
}

// actionButton makes the small button of an action on something that has a name (words.js has the rest).
export function actionButton(what, of, data, { label = actions[what].label, name = `${label}: ${of}`, kind = '', ...more } = {}) {
  return button(what, label, { name, tip: actions[what].tip, data, kind: `small ${kind}`, ...more });
}
