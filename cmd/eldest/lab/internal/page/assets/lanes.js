// The timeline: its view (which time, how wide), the mouse and the keyboard. What is drawn is in
// lanes-draw.js and arrows.js.
import { spanAt } from './bounded.js';
import { setAttr, setData, setText } from './dom.js';
import { draw } from './lanes-draw.js';
import { AXIS, lanesOf, layout, tenureLanesOf } from './lanes-model.js';
import { Messages } from './arrows.js';
import { palette } from './theme.js';
import { hideTip, showTipAt } from './tips.js';
import { clockTime, describe, duration, lives, reportText, statuses } from './words.js';

// LAG_MS is how far the present of the timeline is behind the feed's: events are collected for 50 ms
// before they are sent, and what is drawn should not change afterwards.
const LAG_MS = 150;

// PRESENT is where the present is while the timeline follows it, as a part of the width.
const PRESENT = 0.95;

// DRAW_MS is the time between two drawings that only follow the time; CALM_MS is for users who want
// little motion. What the user does is drawn with the next frame.
const DRAW_MS = 30;
const CALM_MS = 250;

// BEFORE is the space before the beginning, in pixels.
const BEFORE = 14;

const MS_PER_PIXEL = 12; // at first: a lease and what follows is in view
const LEAST_MS_PER_PIXEL = 0.01;
const MOST_MS_PER_PIXEL = 2_000;
const ARROWS = 600; // more messages than that are drawn as bars

export function lanesPanel(root, app) {
  const scroller = root.querySelector('.lanes-scroll');
  const canvas = root.querySelector('canvas');
  const spacer = root.querySelector('.lanes-spacer');
  const pause = root.querySelector('[data-action="pause"]');
  const renewals = root.querySelector('[data-action="renewals"]');
  const arrows = root.querySelector('[data-action="messages"]');
  const g = canvas.getContext('2d');
  const messages = new Messages();
  const view = { msPerPixel: MS_PER_PIXEL, from: 0, follow: true };
  let colours = palette();
  let hatch = hatching(colours);
  const calm = window.matchMedia('(prefers-reduced-motion: reduce)');
  let dirty = true; // the user has changed something
  let stale = false; // the state has changed
  let drawnAt = 0;
  let onScreen = true;
  let scene = null; // what was drawn last
  let drag = null;
  let hover = 0; // the message below the mouse
  let drawnFrom = NaN;

  const gutter = () => (scroller.clientWidth < 560 ? 84 : app.info.mode === 'cluster' ? 190 : 138);
  const plot = () => Math.max(50, scroller.clientWidth - gutter());
  const edge = () => Math.max(0, app.clock.now() - LAG_MS);

  function follow(on) {
    view.follow = on;
    dirty = true;
    setText(pause, on ? 'Pause' : 'Follow');
    setAttr(pause, 'aria-label', on ? 'Pause the timeline' : 'Follow the present again');
    setData(root, 'follow', on);
  }

  function pan(ms) {
    if (view.follow) follow(false);
    view.from += ms;
    dirty = true;
  }

  // zoom keeps the time at x where it is: without x, that of the chosen message, or of the middle.
  function zoom(factor, x) {
    const chosen = app.state.byID.get(app.choice.message);
    const there = chosen ? gutter() + (chosen.at - view.from) / view.msPerPixel : -1;
    const visible = there >= gutter() && there <= gutter() + plot();
    const now = gutter() + (edge() - view.from) / view.msPerPixel;
    const middle = x ?? (visible ? there : Math.max(gutter(), Math.min(now, gutter() + plot() / 2)));
    const at = view.from + (middle - gutter()) * view.msPerPixel;
    view.msPerPixel = Math.min(MOST_MS_PER_PIXEL, Math.max(LEAST_MS_PER_PIXEL, view.msPerPixel * factor));
    view.from = at - (middle - gutter()) * view.msPerPixel;
    dirty = true;
  }

  // reveal shows the time between two instants.
  function reveal(from, to) {
    follow(false);
    const span = Math.max(to - from, 20);
    const part = span / (plot() * view.msPerPixel); // of what is shown
    if (part > 0.8 || part < 0.05) view.msPerPixel = span / (plot() * 0.4);
    view.from = from + span / 2 - (plot() * view.msPerPixel) / 2;
    dirty = true;
  }

  function fit(lanes) {
    const width = scroller.clientWidth;
    const { pinned, total } = layout(lanes, scroller.scrollTop, width < 560);
    const most = Math.max(260, Math.min(640, window.innerHeight * 0.62));
    const height = Math.round(Math.min(Math.max(total, pinned + 60), most));
    // These are written only when they change, so that no frame causes a layout.
    const wanted = `${height}px`;
    if (scroller.style.height !== wanted) scroller.style.height = wanted;
    if (canvas.style.height !== wanted) canvas.style.height = wanted;
    const rest = `${Math.max(0, Math.round(total - height))}px`;
    if (spacer.style.height !== rest) spacer.style.height = rest;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w) canvas.width = w;
    if (canvas.height !== h) canvas.height = h;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    return { pinned, width, height };
  }

  function frame(at) {
    if (!onScreen) return;
    const present = edge();
    if (view.follow) {
      // Until the lanes are full, they begin at the left.
      const { begin } = app.state;
      view.from = Math.max(present - PRESENT * plot() * view.msPerPixel, begin - BEFORE * view.msPerPixel);
    }
    const moved = !(Math.abs(view.from - drawnFrom) < view.msPerPixel * 0.4);
    const early = at - drawnAt < (calm.matches ? CALM_MS : DRAW_MS);
    if (!dirty && (early || !(moved || stale))) return;
    dirty = stale = false;
    drawnAt = at;
    drawnFrom = view.from;
    const { state, choice } = app;
    const lanes = app.info.mode === 'cluster' ? tenureLanesOf(state, choice.election) : lanesOf(state, view.from);
    const { pinned, width, height } = fit(lanes);
    const chosen = state.byID.get(choice.message);
    scene = {
      width, height, gutter: gutter(), lanes, pinned, from: view.from, msPerPixel: view.msPerPixel, edge: present,
      begin: state.begin, colours, hatch, chosen: choice.participant, overlaps: state.overlaps, actions: state.actions,
    };
    const options = {
      messages: isChecked(arrows), renewals: isChecked(renewals), message: choice.message, hover, most: ARROWS,
      call: chosen && chosen.call ? { who: chosen.who, call: chosen.call } : null,
    };
    draw(g, scene, {
      lines: (context, s, byID) => messages.lines(context, s, byID, state, options),
      texts: (context, s, byID) => messages.texts(context, s, byID),
    });
    setData(root, 'dense', messages.dense);
  }

  // laneAt returns the lane at a height of the canvas.
  function laneAt(y) {
    if (!scene) return null;
    const pinned = (l) => l.kind === 'etcd' || l.kind === 'observer';
    const there = y < scene.pinned;
    return scene.lanes.find((l) => pinned(l) === there && y >= l.y && y < l.y + l.height) || null;
  }

  // textAt says what is at a point: the message, or the state of the lane.
  function textAt(x, y, message) {
    if (message) return messageText(message);
    const lane = laneAt(y);
    if (!lane || x < scene.gutter || y < AXIS) return '';
    const at = scene.from + (x - scene.gutter) * scene.msPerPixel;
    if (at > scene.edge) return '';
    const near = 5 * scene.msPerPixel;
    const o = app.state.overlaps.findLast((x) => [x.a, x.b].includes(lane.id) && x.from - near <= at && x.to + near >= at);
    if (o) return `${o.a} and ${o.b} were both sure that they lead, for ${duration(o.to - o.from)}.`;
    const acted = app.state.actions.findLast((a) => Math.abs(a.at - at) <= near && (a.action.on || 'etcd') === lane.id);
    const parts = [`${lane.label}, at ${clockTime(at - scene.begin)}`];
    const life = spanAt(lane.lives, at);
    if (life) parts.push(lives[life.kind].tip);
    const span = spanAt(lane.spans, at);
    if (span) parts.push(spanText(lane, span, scene.edge));
    if (lane.beliefs.some((b) => b.from <= at && b.to >= at)) parts.push('It was sure that it leads.');
    const note = lane.notes.findLast((n) => Math.abs(n.at - at) <= near);
    if (note) parts.push(`Reported: ${reportText(note)}.`);
    if (acted) parts.push(`You: ${describe(acted.action)}${acted.error ? `, which failed: ${acted.error}` : ''}.`);
    return parts.join('\n');
  }

  canvas.addEventListener('pointerdown', (e) => {
    if (e.button !== 0) return;
    drag = { x: e.clientX, from: view.from, moved: false };
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener('pointermove', (e) => {
    if (drag) {
      const dx = e.clientX - drag.x;
      if (!drag.moved && Math.abs(dx) <= 4) return;
      if (!drag.moved) {
        drag.moved = true;
        drag.from = view.from; // it may have followed the present until now
        drag.x = e.clientX;
        follow(false);
        hideTip();
        return;
      }
      view.from = drag.from - dx * view.msPerPixel;
      dirty = true;
      return;
    }
    const message = scene ? messages.at(e.offsetX, e.offsetY) : null;
    const id = message ? message.id : 0;
    if (id !== hover) {
      hover = id;
      dirty = true;
    }
    setAttr(canvas, 'data-pointing', message || (scene && e.offsetX < scene.gutter) ? 'yes' : 'no');
    const text = scene ? textAt(e.offsetX, e.offsetY, message) : '';
    if (text) showTipAt(text, e.clientX, e.clientY);
    else hideTip();
  });
  canvas.addEventListener('pointerup', (e) => {
    const moved = drag && drag.moved;
    drag = null;
    if (moved || !scene || e.button !== 0) return;
    const message = messages.at(e.offsetX, e.offsetY);
    if (message) {
      app.choose({ message: message.id });
      return;
    }
    const lane = laneAt(e.offsetY);
    if (lane && lane.kind === 'participant') app.choose({ participant: lane.id, message: 0 });
  });
  canvas.addEventListener('pointercancel', () => { drag = null; });
  canvas.addEventListener('pointerleave', () => {
    if (hover !== 0) dirty = true;
    hover = 0;
    hideTip();
  });
  canvas.addEventListener('wheel', (e) => {
    if (e.ctrlKey || e.metaKey) {
      e.preventDefault();
      zoom(Math.exp(e.deltaY / 200), view.follow ? undefined : e.offsetX);
    } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      e.preventDefault();
      pan((e.deltaX || e.deltaY) * view.msPerPixel);
    }
  }, { passive: false });
  canvas.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const tenth = (plot() * view.msPerPixel) / 10;
    const keys = {
      ArrowLeft: () => pan(-tenth), ArrowRight: () => pan(tenth), '+': () => zoom(1 / 1.5), '=': () => zoom(1 / 1.5),
      '-': () => zoom(1.5), End: () => follow(true),
    };
    if (!keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
  scroller.addEventListener('scroll', () => { dirty = true; });
  new ResizeObserver(() => { dirty = true; }).observe(scroller);
  new IntersectionObserver((entries) => {
    onScreen = entries.at(-1).isIntersecting;
    dirty = true;
  }).observe(scroller);

  app.handle({
    pause: () => follow(!view.follow),
    'zoom-in': () => zoom(1 / 1.5),
    'zoom-out': () => zoom(1.5),
    renewals: () => { dirty = true; },
    messages: () => { dirty = true; },
    'show-overlap': () => {
      const last = app.state.overlaps.at(-1);
      if (!last) return;
      reveal(last.from - 300, last.to + 300);
      root.scrollIntoView({ block: 'nearest' });
    },
  });
  follow(true);

  return {
    frame,
    // update is called when the state may have changed.
    update: () => { stale = true; },
    // choose is called when another message or participant is chosen.
    choose: () => { dirty = true; },
    reset: () => follow(true),
    // showMessage makes the timeline show a message that is chosen elsewhere.
    showMessage(m) {
      const to = view.from + plot() * view.msPerPixel;
      if (m.at < view.from || m.at > to) reveal(m.at - 5, (m.end ?? m.at) + 5);
      dirty = true;
    },
    theme() {
      colours = palette();
      hatch = hatching(colours);
      dirty = true;
    },
  };
}

// isChecked reports whether a box is checked. Not every mode of the page has all of them.
function isChecked(box) {
  return box !== null && box.checked;
}

// hatching is the pattern of a participant that is stopped.
function hatching(colours) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const t = tile.getContext('2d');
  t.strokeStyle = colours.stopped;
  t.globalAlpha = 0.55;
  t.lineWidth = 1.5;
  t.beginPath();
  for (const x of [-8, 0, 8]) {
    t.moveTo(x, 8);
    t.lineTo(x + 8, 0);
  }
  t.stroke();
  return t.createPattern(tile, 'repeat');
}

function messageText(m) {
  const [from, to] = m.kind === 'request' ? [m.who, 'etcd'] : ['etcd', m.who];
  const end = { held: 'waits in this page', sent: 'on its way' }[m.state] || `${m.state} after ${duration(m.end - m.at)}`;
  const text = m.text.length > 300 ? m.text.slice(0, 299) + '…' : m.text;
  return `${from} → ${to}: ${m.kind}, ${end}\n${text}`;
}

function spanText(lane, span, edge) {
  const took = duration((span.to ?? edge) - span.from);
  const token = span.token ? `, token ${span.token}` : '';
  if (lane.kind === 'etcd') {
    return span.kind === 'led' ? `Member ${span.text} leads etcd.` : 'etcd has no leader: it accepts no writes.';
  }
  if (lane.kind === 'observer') {
    const unknown = `the leader is unknown${span.why ? `: ${span.why}` : ''}`;
    const what = { led: `${span.text} leads${token}`, nobody: 'nobody leads', unknown }[span.kind];
    return `The observer reports: ${what ?? span.kind}.`;
  }
  const known = statuses[span.kind];
  return `It ${known ? known.label : span.kind}${token}, for ${took}${span.to === null ? ' so far' : ''}.`;
}
