// Drawing the timeline on a canvas, without its messages (arrows.js).
//
// A scene is everything that is drawn: { width, height, gutter, lanes, pinned, from, msPerPixel, edge,
// begin, colours, hatch, chosen, overlaps, actions }. edge is the present: spans that are open end
// there. Times are the feed's, in milliseconds.
import { FRESH_MS } from './beliefs.js';
import { step, stepLabel, AXIS } from './lanes-model.js';
import { keylessSince } from './state.js';
import { duration, kindOf } from './words.js';

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

export function xOf(s, at) {
  return s.gutter + (at - s.from) / s.msPerPixel;
}

export function isVisible(s, lane) {
  return lane.kind === 'etcd' || lane.kind === 'observer' || (lane.y + lane.height > s.pinned + 4 && lane.y < s.height);
}

// styleOf returns the colour of a span, and its texts: the longest first, of which the first one that
// fits is drawn.
function styleOf(lane, span) {
  if (lane.kind === 'etcd') {
    return span.kind === 'led' ? ['ok', `member ${span.text} leads etcd`, `${span.text} leads`, span.text] : ['bad', 'etcd has no leader', 'no leader'];
  }
  const token = span.token ? `, token ${span.token}` : '';
  switch (span.kind) {
    case 'queued':
      return ['waiting', 'waits'];
    case 'leads':
      return ['leader', `leads${token}`, 'leads'];
    case 'led':
      return ['leader', `${span.text} leads${token}`, `${span.text} leads`, span.text];
    case 'suspended':
      return ['suspended', 'suspended'];
    case 'nobody':
      return ['dead', 'nobody leads', 'nobody'];
    case 'unknown':
      return ['stopped', span.why ? `unknown: ${span.why}` : 'unknown', 'unknown'];
    case 'stopped':
      return ['stopped', 'stopped'];
    case 'dead':
      return ['dead', 'dead'];
    case 'starting':
      return ['stopped', 'starts'];
    default:
      return ['stopped', String(span.kind)];
  }
}

const widths = new Map(); // of texts, by their font

// widthOf measures a text in the present font. Texts are measured again and again.
export function widthOf(g, text) {
  const key = `${g.font} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 2_000) widths.clear();
    widths.set(key, (width = g.measureText(text).width));
  }
  return width;
}

// fitted shortens a text to a width.
function fitted(g, text, width) {
  if (widthOf(g, text) <= width) return text;
  const most = Math.floor((width / widthOf(g, text)) * text.length) - 1;
  return most < 3 ? '' : text.slice(0, most) + '…';
}

// written draws a text with an edge, so that it can be read on lines.
export function written(g, text, x, y, colour, edge) {
  g.lineJoin = 'round';
  g.lineWidth = 3.5;
  g.strokeStyle = edge;
  g.strokeText(text, x, y);
  g.fillStyle = colour;
  g.fillText(text, x, y);
}

function box(g, x, y, width, height, radius) {
  g.beginPath();
  g.roundRect(x, y, width, height, Math.min(radius, width / 2, height / 2));
}

// barOf returns where the bar of a lane is; the line of its beliefs is above it. A large one has room
// for two lines of text: the methods of messages, and below them the state.
export function barOf(lane) {
  if (lane.kind === 'etcd') return { y: lane.y + 5, height: 24, size: 'middle' }; // arrows end below it
  const small = lane.height < 30;
  const top = lane.kind === 'participant' ? (small ? 6 : 10) : small ? 3 : 6;
  const size = small || lane.kind === 'observer' ? 'small' : lane.kind === 'participant' && lane.height >= 44 ? 'large' : 'middle';
  return { y: lane.y + top, height: lane.height - top - (small ? 3 : 6), size };
}

// spansInView calls use with each span that is in view, the newest first, and where it begins and ends.
function spansInView(s, spans, use) {
  for (let i = spans.length - 1; i >= 0; i--) {
    const span = spans[i];
    const right = xOf(s, span.to === null ? Math.max(s.edge, span.from) : span.to);
    if (right < s.gutter) break; // so are all the earlier ones
    const left = xOf(s, span.from);
    if (left <= s.width) use(span, left, right);
  }
}

function drawSpans(g, s, lane, spans) {
  const c = s.colours;
  const bar = barOf(lane);
  spansInView(s, spans, (span, begin, end) => {
    const left = Math.max(begin, s.gutter - 12);
    const width = Math.max(Math.min(end, s.width + 12) - left, 1.5);
    const [tone] = styleOf(lane, span);
    box(g, left, bar.y, width, bar.height, 5);
    if (span.kind === 'stopped') {
      g.fillStyle = c['stopped-soft'];
      g.globalAlpha = 0.75;
      g.fill();
      g.globalAlpha = 1;
      g.fillStyle = s.hatch;
    } else {
      g.fillStyle = c[`${tone}-soft`];
    }
    g.fill();
    if (begin < s.gutter || width <= 5) return;
    g.fillStyle = c[tone];
    g.fillRect(left, bar.y + 1, 3, bar.height - 2);
  });
}

// drawKeyless makes the bar paler while a candidate waits without a key.
function drawKeyless(g, s, lane) {
  const since = lane.p ? keylessSince(lane.p, s.edge) : null;
  if (since === null) return;
  const bar = barOf(lane);
  const left = Math.max(xOf(s, since), s.gutter);
  const right = Math.min(xOf(s, s.edge), s.width);
  if (right <= left) return;
  g.globalAlpha = 0.65;
  g.fillStyle = s.colours.panel;
  g.fillRect(left, bar.y, right - left, bar.height);
  g.globalAlpha = 1;
}

// drawTexts writes the states into the bars of a lane. What a stop or the like covers is left out.
function drawTexts(g, s, lane) {
  const bar = barOf(lane);
  const y = bar.size === 'large' ? bar.y + bar.height - 11 : bar.y + bar.height / 2 + 0.5;
  g.font = `${bar.size === 'small' ? 10 : 11.5}px ${FONT}`;
  g.textBaseline = 'middle';
  const covers = []; // where they begin and end, the newest first
  const write = (span, left, right) => {
    const [tone, ...texts] = styleOf(lane, span);
    const x = Math.max(left, s.gutter) + 9;
    const room = Math.min(right, s.width) - x - 4;
    const text = texts.find((t) => widthOf(g, t) <= room) ?? '';
    if (text === '') return false;
    written(g, text, x, y, s.colours[`${tone}-text`], s.colours[`${tone}-soft`]);
    return true;
  };
  spansInView(s, lane.lives, (span, left, right) => {
    write(span, left, right);
    covers.push([left, right]);
  });
  spansInView(s, lane.spans, (span, left, right) => {
    let from = left;
    for (const [begin, end] of [...covers].reverse()) {
      if (end <= from || begin >= right) continue;
      if (begin > from && write(span, from, begin)) return;
      from = Math.max(from, end);
    }
    if (from < right) write(span, from, right);
  });
}

function drawBeliefs(g, s, lane) {
  const small = lane.height < 30;
  const y = lane.y + (small ? 2 : 4);
  const height = small ? 3 : 4;
  g.fillStyle = s.colours.leader;
  for (let i = lane.beliefs.length - 1; i >= 0; i--) {
    const belief = lane.beliefs[i];
    const last = i === lane.beliefs.length - 1;
    const to = last && belief.open && s.edge - belief.to < FRESH_MS ? s.edge : Math.min(belief.to, s.edge);
    const right = xOf(s, to);
    if (right < s.gutter) break;
    const left = Math.max(xOf(s, belief.from), s.gutter - 4);
    if (left > s.width) continue;
    g.fillRect(left, y, Math.max(Math.min(right, s.width + 4) - left, 1.5), height);
  }
}

const MARKED = new Set(['refused', 'fence refused', 'evicted', 'failed', 'yielded', 'stuck']);

// drawNotes marks the reports that no bar shows.
function drawNotes(g, s, lane) {
  g.fillStyle = s.colours.event;
  const y = lane.y + lane.height - 4;
  for (let i = lane.notes.length - 1; i >= 0; i--) {
    const note = lane.notes[i];
    if (note.at < s.from) break;
    if (!MARKED.has(note.kind)) continue;
    g.beginPath();
    g.arc(xOf(s, note.at), y, 2.2, 0, 2 * Math.PI);
    g.fill();
  }
}

// drawActions marks what the user did, above the lane that it concerns.
function drawActions(g, s, byID) {
  for (let i = s.actions.length - 1; i >= 0; i--) {
    const { at, action, error } = s.actions[i];
    const x = xOf(s, at);
    if (x < s.gutter) break;
    const lane = byID.get(action.on) || byID.get(action.key) || byID.get('etcd');
    if (x > s.width || !lane || !isVisible(s, lane)) continue;
    g.fillStyle = error ? s.colours.bad : s.colours.accent;
    g.beginPath();
    g.moveTo(x - 4.5, lane.y + 1);
    g.lineTo(x + 4.5, lane.y + 1);
    g.lineTo(x, lane.y + 8);
    g.fill();
  }
}

// overlapsInView calls use with each time in which two participants believed that they lead, where it
// is drawn, and with the two lanes, the upper one first.
function overlapsInView(s, byID, use) {
  for (let i = s.overlaps.length - 1; i >= 0; i--) {
    const o = s.overlaps[i];
    const live = i === s.overlaps.length - 1 && s.edge - o.to < FRESH_MS;
    const right = Math.min(xOf(s, live ? s.edge : Math.min(o.to, s.edge)), s.width + 4);
    const left = Math.max(xOf(s, o.from), s.gutter - 4);
    const a = byID.get(o.a);
    const b = byID.get(o.b);
    if (!a || !b || right < s.gutter || left > s.width) continue;
    use(o, left, Math.max(right - left, 3), ...(a.y < b.y ? [a, b] : [b, a]));
  }
}

// drawOverlaps marks them over both lanes.
function drawOverlaps(g, s, byID) {
  const c = s.colours;
  overlapsInView(s, byID, (o, left, width, top, bottom) => {
    g.globalAlpha = 0.16;
    g.fillStyle = c.bad;
    g.fillRect(left, top.y, width, bottom.y + bottom.height - top.y);
    g.globalAlpha = 1;
    for (const lane of [top, bottom]) {
      g.fillRect(left, lane.y + 2, width, lane.height < 30 ? 4 : 6);
      g.strokeStyle = c.bad;
      g.lineWidth = 1.5;
      g.strokeRect(left + 0.75, lane.y + 1.5, Math.max(width - 1.5, 1), lane.height - 3);
    }
  });
}

function drawOverlapTexts(g, s, byID) {
  const c = s.colours;
  g.font = `600 11.5px ${FONT}`;
  g.textBaseline = 'middle';
  overlapsInView(s, byID, (o, left, width, top, bottom) => {
    const text = `two leaders: ${duration(o.to - o.from)}`;
    const wide = widthOf(g, text) + 16;
    const begin = Math.max(left, s.gutter);
    const room = Math.min(left + width, s.width) - begin;
    if (room < wide) return;
    const x = begin + (room - wide) / 2;
    const y = (top.y + bottom.y + bottom.height) / 2;
    g.fillStyle = c.bad;
    box(g, x, y - 10, wide, 20, 10);
    g.fill();
    g.fillStyle = c.panel;
    g.fillText(text, x + 8, y + 0.5);
  });
}

function drawGrid(g, s) {
  const every = step(s.msPerPixel);
  const first = Math.ceil((s.from - s.begin) / every) * every + s.begin;
  g.strokeStyle = s.colours.line;
  g.lineWidth = 1;
  g.beginPath();
  for (let at = Math.max(first, s.begin); xOf(s, at) < s.width; at += every) {
    const x = Math.round(xOf(s, at)) + 0.5;
    g.moveTo(x, AXIS);
    g.lineTo(x, s.height);
  }
  g.stroke();
}

function drawAxis(g, s) {
  const c = s.colours;
  const every = step(s.msPerPixel);
  const first = Math.ceil((s.from - s.begin) / every) * every + s.begin;
  g.fillStyle = c.panel;
  g.fillRect(s.gutter, 0, s.width - s.gutter, AXIS);
  g.fillStyle = c.muted;
  g.font = `11px ${FONT}`;
  g.textBaseline = 'middle';
  for (let at = Math.max(first, s.begin); xOf(s, at) < s.width; at += every) {
    const x = xOf(s, at);
    if (x > s.gutter - 1) g.fillText(stepLabel(at - s.begin, every), x + 4, AXIS / 2);
  }
}

function drawNow(g, s) {
  const x = Math.round(xOf(s, s.edge)) + 0.5;
  if (x < s.gutter || x > s.width) return;
  g.strokeStyle = s.colours.accent;
  g.lineWidth = 1;
  g.beginPath();
  g.moveTo(x, AXIS);
  g.lineTo(x, s.height);
  g.stroke();
}

// toneOf is the colour of the dot before a participant's name.
function toneOf(p) {
  if (p.state.life === 'dead' || p.state.life === 'left') return 'dead';
  if (p.state.life === 'stopped') return 'stopped';
  return { leads: 'leader', queued: 'waiting', suspended: 'suspended' }[p.status] || 'stopped';
}

function drawLabel(g, s, lane) {
  const c = s.colours;
  if (lane.id === s.chosen) {
    g.fillStyle = c['accent-soft'];
    g.fillRect(0, lane.y, s.gutter, lane.height);
    g.fillStyle = c.accent;
    g.fillRect(0, lane.y, 3, lane.height);
  }
  const two = lane.note !== '' && lane.height >= 36;
  const middle = lane.y + lane.height / 2;
  const x = lane.p ? 22 : 10;
  if (lane.p) {
    g.fillStyle = c[toneOf(lane.p)];
    g.beginPath();
    g.arc(12, two ? middle - 7 : middle, 4, 0, 2 * Math.PI);
    g.fill();
  }
  g.textBaseline = 'middle';
  g.fillStyle = lane.p || lane.kind === 'tenure' ? c.ink : c.muted;
  g.font = `600 ${lane.height < 30 ? 11 : 13}px ${FONT}`;
  g.fillText(fitted(g, lane.label, s.gutter - x - 6), x, two ? middle - 7 : middle);
  if (!two) return;
  g.fillStyle = c.muted;
  g.font = `10.5px ${FONT}`;
  g.fillText(fitted(g, kindOf(lane.note).label, s.gutter - x - 4), x, middle + 8);
}

function drawLane(g, s, lane) {
  clipTo(g, s.gutter, lane.y, s.width - s.gutter, lane.height);
  drawSpans(g, s, lane, lane.spans);
  drawKeyless(g, s, lane);
  drawSpans(g, s, lane, lane.lives);
  drawBeliefs(g, s, lane);
  drawNotes(g, s, lane);
  g.restore();
}

function clipTo(g, x, y, width, height) {
  g.save();
  g.beginPath();
  g.rect(x, y, width, height);
  g.clip();
}

// draw draws a scene. messages draws the messages: first their lines, which are on the bars and below
// all texts, and then their texts.
export function draw(g, s, messages) {
  const c = s.colours;
  g.fillStyle = c.panel;
  g.fillRect(0, 0, s.width, s.height);
  const pinned = s.lanes.filter((l) => l.kind === 'etcd' || l.kind === 'observer');
  const others = s.lanes.filter((l) => l.kind !== 'etcd' && l.kind !== 'observer' && isVisible(s, l));
  const byID = new Map(s.lanes.map((l) => [l.id, l]));

  clipTo(g, 0, s.pinned, s.width, s.height - s.pinned);
  g.strokeStyle = c.line;
  g.lineWidth = 1;
  g.beginPath();
  for (const lane of others) {
    g.moveTo(0, Math.round(lane.y + lane.height) + 0.5);
    g.lineTo(s.width, Math.round(lane.y + lane.height) + 0.5);
  }
  g.stroke();
  drawGrid(g, s);
  for (const lane of others) drawLane(g, s, lane);
  clipTo(g, s.gutter, s.pinned, s.width - s.gutter, s.height - s.pinned);
  drawOverlaps(g, s, byID);
  g.restore();
  g.restore();

  g.fillStyle = c.sunken;
  g.fillRect(0, AXIS, s.width, s.pinned - AXIS);
  for (const lane of pinned) drawLane(g, s, lane);
  drawAxis(g, s);
  clipTo(g, s.gutter, AXIS, s.width - s.gutter, s.height - AXIS);
  messages.lines(g, s, byID);
  for (const lane of pinned) drawTexts(g, s, lane);
  drawActions(g, s, byID);
  clipTo(g, s.gutter, s.pinned, s.width - s.gutter, s.height - s.pinned);
  for (const lane of others) drawTexts(g, s, lane);
  messages.texts(g, s, byID);
  drawOverlapTexts(g, s, byID);
  g.restore();
  g.restore();
  drawNow(g, s);

  clipTo(g, 0, s.pinned, s.gutter, s.height - s.pinned);
  g.fillStyle = c.panel;
  g.fillRect(0, s.pinned, s.gutter, s.height);
  for (const lane of others) drawLabel(g, s, lane);
  g.restore();
  g.fillStyle = c.panel;
  g.fillRect(0, 0, s.gutter, AXIS);
  g.fillStyle = c.sunken;
  g.fillRect(0, AXIS, s.gutter, s.pinned - AXIS);
  for (const lane of pinned) drawLabel(g, s, lane);
  g.strokeStyle = c.line;
  g.lineWidth = 1;
  g.beginPath();
  g.moveTo(s.gutter + 0.5, AXIS);
  g.lineTo(s.gutter + 0.5, s.height);
  g.moveTo(0, Math.round(s.pinned) + 0.5);
  g.lineTo(s.width, Math.round(s.pinned) + 0.5);
  g.stroke();
}
