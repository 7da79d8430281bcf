// Drawing messages: as arrows between the lane of a participant and that of etcd, or, if there are
// too many, as bars that show how many there are.
import { spanAt } from './bounded.js';
import { density, distance, inView } from './lanes-model.js';
import { barOf, isVisible, widthOf, written, xOf, FONT } from './lanes-draw.js';

const STUB = 13; // how far the arrow of a message that waits is drawn
const HEAD = 4.5;

// LEAN is how far an arrow leans at least, so that a request and its answer can be told apart when
// their time is less than a pixel. Where it meets etcd is exact.
const LEAN = 6;

// Pen collects the lines and heads of one style, so that each style is one path.
class Pen {
  lines = [];
  heads = [];

  line(x1, y1, x2, y2) {
    this.lines.push(x1, y1, x2, y2);
  }

  head(x1, y1, x2, y2) {
    this.heads.push(x1, y1, x2, y2);
  }

  draw(g, colour, width, dash, alpha) {
    g.globalAlpha = alpha;
    g.strokeStyle = g.fillStyle = colour;
    g.lineWidth = width;
    g.setLineDash(dash);
    g.beginPath();
    for (let i = 0; i < this.lines.length; i += 4) {
      g.moveTo(this.lines[i], this.lines[i + 1]);
      g.lineTo(this.lines[i + 2], this.lines[i + 3]);
    }
    g.stroke();
    g.setLineDash([]);
    g.beginPath();
    for (let i = 0; i < this.heads.length; i += 4) triangle(g, ...this.heads.slice(i, i + 4));
    g.fill();
    g.globalAlpha = 1;
  }
}

// triangle adds the head of an arrow from the first point to the second.
function triangle(g, x1, y1, x2, y2) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const ux = (x2 - x1) / length;
  const uy = (y2 - y1) / length;
  g.moveTo(x2, y2);
  g.lineTo(x2 - ux * HEAD * 1.5 - uy * HEAD * 0.7, y2 - uy * HEAD * 1.5 + ux * HEAD * 0.7);
  g.lineTo(x2 - ux * HEAD * 1.5 + uy * HEAD * 0.7, y2 - uy * HEAD * 1.5 - ux * HEAD * 0.7);
}

function cross(pen, x, y) {
  pen.line(x - 4, y - 4, x + 4, y + 4);
  pen.line(x - 4, y + 4, x + 4, y - 4);
}

// pathOf returns the points of a message's path, and whether it has arrived.
function pathOf(s, m, lane, etcd) {
  const here = barOf(lane).y + 1;
  const there = barOf(etcd).y + barOf(etcd).height + 3;
  const request = m.kind === 'request';
  const [y1, y2] = request ? [here, there] : [there, here];
  const x1 = xOf(s, m.at);
  const stub = y1 + Math.sign(y2 - y1 || 1) * Math.min(STUB, Math.abs(y2 - y1) / 3);
  if (m.state === 'sent') return { points: [x1, y1, x1, stub], arrived: false };
  if (m.state === 'held') return { points: [x1, y1, x1, stub, Math.max(x1, xOf(s, s.edge)), stub], arrived: false };
  const x2 = xOf(s, m.end);
  const lost = m.state === 'lost';
  if (m.heldAt !== null && x2 - x1 > 10) {
    return { points: lost ? [x1, y1, x1, stub, x2, stub] : [x1, y1, x1, stub, x2, stub, x2, y2], arrived: !lost };
  }
  const [begin, end] = request ? [Math.min(x1, x2 - LEAN), x2] : [x1, Math.max(x2, x1 + LEAN)];
  if (lost) return { points: [begin, y1, (begin + end) / 2, (y1 + y2) / 2], arrived: false };
  return { points: [begin, y1, end, y2], arrived: true };
}

const MOST_TEXTS = 150; // arrows, so that their methods are written

// surfaceAt returns the colour of the bar of a lane at a time.
function surfaceAt(s, lane, at) {
  const span = spanAt(lane.lives, at) || spanAt(lane.spans, at);
  const tone = span ? { queued: 'waiting', leads: 'leader', suspended: 'suspended', dead: 'dead' }[span.kind] || 'stopped' : '';
  return tone ? s.colours[`${tone}-soft`] : s.colours.panel;
}

const STYLES = ['request', 'answer', 'event', 'end', 'renewal', 'lost', 'held', 'chosen', 'call'];

// Messages draws the messages of a scene, and finds the one at a point of it.
export class Messages {
  #drawn = []; // { m, points }
  dense = false;

  // lines draws the messages of state. most is how many are drawn as arrows; options are
  // { messages, renewals, message, call, hover, most }.
  lines(g, s, byID, state, options) {
    this.#drawn = [];
    this.dense = false;
    if (!options.messages) return;
    const etcd = byID.get('etcd');
    if (!etcd) return;
    // What is newer than the present of the timeline is not drawn yet.
    const to = Math.min(s.from + (s.width - s.gutter) * s.msPerPixel, s.edge);
    const found = [];
    inView(state, s.from, to, (m) => {
      if (m.renewal && !options.renewals && m.state !== 'held') return;
      const lane = byID.get(m.who);
      if (lane && lane !== etcd && isVisible(s, lane)) found.push(m);
    });
    this.dense = found.length > options.most;
    let arrows = found;
    if (this.dense) {
      const bins = Math.max(1, Math.floor((s.width - s.gutter) / 3));
      drawDensity(g, s, density(state, s.from, s.from + (s.width - s.gutter) * s.msPerPixel, bins, options.renewals));
      arrows = found.filter((m) => m.state === 'held' || m.id === options.message);
    }
    this.#arrows(g, s, byID, etcd, arrows, options);
  }

  #arrows(g, s, byID, etcd, arrows, options) {
    const c = s.colours;
    const pens = {};
    for (const style of STYLES) pens[style] = new Pen();
    const rings = [];
    for (const m of arrows) {
      const { points, arrived } = pathOf(s, m, byID.get(m.who), etcd);
      this.#drawn.push({ m, points });
      const chosen = m.id === options.message || m.id === options.hover;
      const pen = chosen ? pens.chosen
        : options.call && m.call === options.call.call && m.who === options.call.who ? pens.call
        : m.state === 'lost' ? pens.lost
        : m.state === 'held' ? pens.held
        : m.renewal ? pens.renewal
        : pens[m.kind] || pens.end;
      for (let i = 0; i + 3 < points.length; i += 2) pen.line(...points.slice(i, i + 4));
      const n = points.length;
      if (arrived) pen.head(points[n - 4], points[n - 3], points[n - 2], points[n - 1]);
      else if (m.state === 'lost') cross(pen, points[n - 2], points[n - 1]);
      else if (m.state === 'held') rings.push(points[n - 2], points[n - 1]);
    }
    const alpha = arrows.length > 250 ? 0.4 : arrows.length > 80 ? 0.6 : 0.85;
    pens.renewal.draw(g, c.muted, 1, [], alpha * 0.45);
    pens.end.draw(g, c.muted, 1, [2, 3], alpha);
    pens.answer.draw(g, c.ink, 1, [4, 2.5], alpha * 0.8);
    pens.request.draw(g, c.ink, 1.1, [], alpha);
    pens.event.draw(g, c.event, 1.4, [], Math.max(alpha, 0.7));
    pens.lost.draw(g, c.bad, 1.5, [], 0.9);
    pens.held.draw(g, c.accent, 1.6, [3, 3], 1);
    pens.call.draw(g, c.accent, 1.5, [], 0.9);
    pens.chosen.draw(g, c.accent, 2.4, [], 1);
    g.fillStyle = c.panel;
    g.strokeStyle = c.accent;
    g.lineWidth = 2;
    for (let i = 0; i < rings.length; i += 2) {
      g.beginPath();
      g.arc(Math.min(rings[i], s.width - 6), rings[i + 1], 4, 0, 2 * Math.PI);
      g.fill();
      g.stroke();
    }
  }

  // texts writes the methods where the arrows of requests and events end, where there is room. It comes
  // after lines.
  texts(g, s, byID) {
    if (this.#drawn.length > MOST_TEXTS) return;
    const last = new Map(); // of each lane: where its last text ends
    g.font = `10.5px ${FONT}`;
    g.textBaseline = 'middle';
    for (const { m, points } of this.#drawn) {
      const lane = byID.get(m.who);
      const bar = barOf(lane);
      if (bar.size !== 'large' || (m.kind !== 'request' && m.kind !== 'event' && m.state !== 'held')) continue;
      const begins = m.kind === 'request' || m.state === 'held';
      const x = (begins ? points[0] : points[points.length - 2]) + 3;
      const width = widthOf(g, m.method);
      if (x < s.gutter || x < (last.get(m.who) ?? -Infinity) || x + width > s.width) continue;
      last.set(m.who, x + width + 8);
      const colour = m.state === 'held' ? s.colours.accent : m.kind === 'event' ? s.colours.event : s.colours.muted;
      written(g, m.method, x, bar.y + 9, colour, surfaceAt(s, lane, begins ? m.at : m.end ?? m.at));
    }
  }

  // at returns the message whose path is nearest to a point, or null.
  at(x, y) {
    let best = null;
    let least = 6;
    for (const { m, points } of this.#drawn) {
      for (let i = 0; i + 3 < points.length; i += 2) {
        const d = distance(x, y, points[i], points[i + 1], points[i + 2], points[i + 3]);
        if (d < least) [least, best] = [d, m];
      }
    }
    return best;
  }
}

function drawDensity(g, s, { lanes, most, bins }) {
  const width = (s.width - s.gutter) / bins;
  for (const lane of s.lanes) {
    const counts = lanes.get(lane.id);
    if (!counts || !isVisible(s, lane)) continue;
    const room = lane.height * 0.5;
    const base = lane.y + lane.height - 2;
    for (let i = 0; i < bins; i++) {
      if (counts.sent[i] === 0) continue;
      const height = Math.max(1.5, room * Math.sqrt(counts.sent[i] / most));
      g.fillStyle = counts.lost[i] > 0 ? s.colours.bad : s.colours.muted;
      g.globalAlpha = counts.lost[i] > 0 ? 0.9 : 0.6;
      g.fillRect(s.gutter + i * width, base - height, width - 0.6, height);
    }
  }
  g.globalAlpha = 1;
}
