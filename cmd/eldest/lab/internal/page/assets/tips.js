// Tooltips: one element for all of them. An element with data-tip shows its sentence on hover and on
// focus by keyboard. Escape hides it.

const tip = document.getElementById('tip');
let owner = null; // the element whose tooltip is shown
let described = null; // the element that has the focus or the mouse: the owner, or one in it

export function startTips() {
  if (typeof tip.showPopover === 'function') tip.setAttribute('popover', 'manual');
  else tip.hidden = true;
  document.addEventListener('pointerover', (e) => {
    const el = e.target instanceof Element ? e.target.closest('[data-tip]') : null;
    if (el) showFor(el, el);
    else if (owner && document.activeElement !== described) hideTip();
  });
  document.addEventListener('focusin', (e) => {
    const el = e.target instanceof Element ? e.target.closest('[data-tip]') : null;
    if (el && e.target.matches(':focus-visible')) showFor(el, e.target);
    else hideTip();
  });
  document.addEventListener('focusout', hideTip);
  document.addEventListener('keydown', (e) => {
    if (e.key === 'Escape') hideTip();
  });
  document.addEventListener('scroll', hideTip, true);
  document.addEventListener('pointerdown', hideTip);
}

function showFor(el, target) {
  if (owner === el) return;
  hideTip();
  const text = el.dataset.tip;
  if (!text) return;
  owner = el;
  described = target;
  described.setAttribute('aria-describedby', 'tip');
  const box = el.getBoundingClientRect();
  place(text, box.left, box.bottom + 6, box.top - 6);
}

// showTipAt shows a text below a point, or above it if there is no room. It belongs to no element.
export function showTipAt(text, x, y) {
  if (owner) hideTip();
  place(text, x + 12, y + 16, y - 12);
}

function place(text, left, below, above) {
  if (tip.textContent !== text) tip.textContent = text;
  visible(true);
  const width = tip.offsetWidth;
  const height = tip.offsetHeight;
  const x = Math.max(8, Math.min(left, window.innerWidth - width - 8));
  const y = below + height + 8 <= window.innerHeight ? below : Math.max(8, above - height);
  tip.style.left = `${Math.round(x)}px`;
  tip.style.top = `${Math.round(y)}px`;
}

export function hideTip() {
  if (described) described.removeAttribute('aria-describedby');
  owner = described = null;
  visible(false);
}

function visible(on) {
  if (!tip.hasAttribute('popover')) {
    tip.hidden = !on;
    return;
  }
  if (on === tip.matches(':popover-open')) return;
  if (on) tip.showPopover();
  else tip.hidePopover();
}
