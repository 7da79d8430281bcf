// The page of eldest lab: makes its parts, reads the feed, and calls the parts when something has
// changed. The timeline is drawn with each frame, the rest at most ten times a second.
import { apply, newState } from './state.js';
import { Clock, connect, get, post } from './feed.js';
import { setAttr, setData, setText, show } from './dom.js';
import { describe, duration, terms } from './words.js';
import { liveOverlap } from './headline.js';
import { startTheme, toggleTheme, remember, remembered } from './theme.js';
import { startTips } from './tips.js';
import { confirm, startDialogs } from './dialogs.js';
import { startKeys } from './keys.js';
import { placeActions, queuePanel } from './queue.js';
import { membersPanel } from './members.js';
import { participantsPanel } from './participants.js';
import { lanesPanel } from './lanes.js';
import { inspectorPanel } from './inspector.js';
import { heldPanel } from './held.js';
import { donePanel } from './actions.js';
import { lessonsPanel } from './lessons-panel.js';
import { electionsPanel, tenuresPanel } from './elections.js';

const DOM_MS = 100; // between two updates of the elements
const TOAST_MS = { good: 2_500, bad: 14_000 };
const FADE_MS = 200; // as long as the transition of #said, or longer
const INTRO = 'eldest-lab-intro';

const state = newState();
window.eldest = { state }; // for tests

const byID = (id) => document.getElementById(id);

function newApp() {
  const handlers = new Map(); // of actions, by data-action
  const turns = new WeakMap(); // of elements whose actions are done one after another
  let toast = 0;
  const app = {
    state,
    info: { mode: 'sandbox', write: false, endpoints: [], kinds: [], rules: [] },
    clock: new Clock(),
    choice: { participant: '', message: 0, election: '' },
    urgent: true, // the elements are updated with the next frame
    lanes: null,

    // handle registers what actions do; each is registered once.
    handle(map) {
      for (const [name, handler] of Object.entries(map)) {
        if (handlers.has(name)) throw new Error(`two parts of the page handle ${name}`);
        handlers.set(name, handler);
      }
    },

    // run does an action of the page, as if its button had been pressed.
    run(name, el, e) {
      const handler = handlers.get(name);
      if (handler) handler(el, e);
    },

    // choose changes what is shown in detail.
    choose(patch) {
      Object.assign(app.choice, patch);
      app.urgent = true;
      const m = patch.message ? state.byID.get(patch.message) : null;
      if (m && app.lanes) app.lanes.showMessage(m);
      if (app.lanes) app.lanes.choose();
    },

    // queue returns the queue that is shown, or null.
    queue() {
      if (app.info.mode === 'cluster') return state.queues.get(app.choice.election) || null;
      return state.queues.get(app.info.election) || state.queues.values().next().value || null;
    },

    // act asks the server to do an action. The element shows that it is being done; while it is,
    // another press does nothing, or with inTurn waits. It returns whether it was done.
    async act(action, el, { inTurn = false } = {}) {
      const before = el ? turns.get(el) : undefined;
      if (before && !inTurn) return false;
      const doing = (before || Promise.resolve()).then(() => post('/do', action));
      const settled = doing.catch(() => {});
      if (el) {
        turns.set(el, settled);
        setAttr(el, 'aria-busy', 'true');
      }
      try {
        await doing;
        app.say(`Done: ${describe(action)}.`);
        return true;
      } catch (err) {
        app.say(`${describe(action)}: ${err.message}`, 'bad');
        return false;
      } finally {
        if (el && turns.get(el) === settled) {
          turns.delete(el);
          setAttr(el, 'aria-busy', null);
        }
      }
    },

    // say shows a message for some seconds; it is read aloud.
    say(text, tone = 'good') {
      const said = byID('said');
      setText(said, text);
      setData(said, 'tone', tone);
      setAttr(said, 'data-shown', true);
      clearTimeout(toast);
      toast = setTimeout(() => {
        setAttr(said, 'data-shown', null);
        toast = setTimeout(() => setText(said, ''), FADE_MS);
      }, TOAST_MS[tone]);
    },

    // announce is read aloud, and not shown.
    announce(text) {
      setText(byID('announcer'), text);
    },

    confirm,
  };
  return app;
}

// isWhole reports whether a participant is of Eldest, with all rules.
function isWhole(p) {
  return p !== undefined && ['eldest', 'heartbeats', 'keeper'].includes(p.state.kind) && !p.state.rule;
}

// overlapBanner warns of two leaders.
function overlapBanner(app) {
  const root = byID('overlap');
  const text = root.querySelector('.overlap-text');
  const meaning = root.querySelector('.overlap-meaning');
  let dismissed = null;
  app.handle({
    'dismiss-overlap': () => {
      dismissed = state.overlaps.at(-1) || null;
      show(root, false);
    },
  });
  return {
    update(now) {
      const last = state.overlaps.at(-1) || null;
      const visible = last !== null && last !== dismissed;
      show(root, visible);
      if (!visible) return;
      const live = liveOverlap(state, now);
      setText(text, `Two leaders: ${last.a} and ${last.b}, for ${duration(last.to - last.from)}${live ? ' so far' : ''}.`);
      const both = [last.a, last.b].every((who) => isWhole(state.participants.get(who)));
      setText(meaning, `Both were sure that they lead at the same time. ${both ? 'That must never happen.' : 'With Eldest and all its rules this does not happen.'}`);
      setData(root, 'live', Boolean(live));
    },
  };
}

// PROBLEM_MS is how long a problem is shown: one that persists is reported every 30 seconds.
const PROBLEM_MS = 40_000;

// problemBanner shows the newest error that no action caused.
function problemBanner(app) {
  const root = byID('problem');
  const text = root.querySelector('.problem-text');
  let dismissed = '';
  app.handle({ 'dismiss-problem': () => { dismissed = text.textContent; } });
  return {
    update(now) {
      const last = state.problems.at(-1);
      const visible = last !== undefined && now - last.at < PROBLEM_MS && last.text !== dismissed;
      if (visible) setText(text, last.text);
      show(root, visible);
    },
  };
}

function showStatus(status) {
  const el = byID('status');
  const texts = {
    connecting: ['connecting', 'The page is connecting to the lab.'],
    live: ['live', 'The page receives what happens at once.'],
    lost: ['disconnected', 'The lab does not answer. The page connects again by itself; if eldest lab was started again, '
      + 'open the address that it printed.'],
  };
  const [text, tip] = texts[status];
  setText(el, text);
  setData(el, 'status', status);
  setData(el, 'tip', tip);
  setData(document.body, 'connection', status);
  // While the page connects again, what it shows is still the last state.
  const ended = status === 'lost' ? state.seq > 0 : status === 'connecting' && !byID('ended').hidden;
  show(byID('ended'), ended);
  setData(document.body, 'ended', ended);
}

// dispatch finds the handler of what was pressed or changed.
function dispatch(app) {
  document.addEventListener('click', (e) => {
    const el = e.target instanceof Element ? e.target.closest('[data-action]') : null;
    if (el && !el.matches('input, select, textarea')) app.run(el.dataset.action, el, e);
  });
  document.addEventListener('change', (e) => {
    const el = e.target;
    if (el instanceof Element && el.matches('input[data-action], select[data-action]')) app.run(el.dataset.action, el, e);
  });
}

function introduce(app) {
  show(byID('intro'), app.info.mode === 'sandbox' && remembered(INTRO) !== 'read');
  app.handle({
    'dismiss-intro': () => {
      remember(INTRO, 'read');
      show(byID('intro'), false);
    },
  });
}

// partsOf makes the parts of the page that its mode has. The others are removed.
function partsOf(app) {
  const { mode } = app.info;
  document.body.dataset.mode = mode;
  document.body.dataset.write = String(app.info.write);
  for (const el of document.querySelectorAll('[data-only]')) if (el.dataset.only !== mode) el.remove();
  for (const el of document.querySelectorAll('[data-term]')) setData(el, 'tip', terms[el.dataset.term]);
  setText(byID('version'), app.info.version || '');
  const cluster = (app.info.endpoints || []).join(', ') + (app.info.write ? '' : ' · read only');
  setText(byID('where'), mode === 'cluster' ? cluster : 'sandbox');
  const parts = [
    queuePanel(byID('queue'), app), membersPanel(byID('members'), app), overlapBanner(app), problemBanner(app),
  ];
  if (mode === 'cluster') {
    parts.push(electionsPanel(byID('elections'), app), tenuresPanel(byID('tenures'), app));
    placeActions(app);
    if (app.info.write) parts.push(donePanel(byID('done'), app));
    else byID('done').remove();
  } else {
    parts.push(participantsPanel(byID('participants'), app), inspectorPanel(byID('inspector'), app));
    parts.push(heldPanel(byID('held'), app), donePanel(byID('done'), app));
    lessonsPanel(byID('lessons'), app);
  }
  return parts;
}

async function start() {
  const app = newApp();
  dispatch(app);
  startTips();
  startDialogs(app);
  startTheme(() => app.lanes && app.lanes.theme());
  app.handle({
    theme: () => {
      toggleTheme();
      if (app.lanes) app.lanes.theme();
    },
  });
  showStatus('connecting');
  try {
    app.info = await get('/info');
  } catch (err) {
    setText(byID('fatal'), `The page could not begin: ${err.message}`);
    show(byID('fatal'), true);
    showStatus('lost');
    return;
  }
  app.choice.election = app.info.election || '';
  introduce(app);
  const parts = partsOf(app);
  app.lanes = lanesPanel(byID('lanes'), app);
  startKeys(app);
  follow(app);
  loop(app, parts);
}

// follow reads the feed.
function follow(app) {
  connect({
    after: () => state.seq,
    onStatus: showStatus,
    onEvents(events) {
      const { resets } = state;
      if (events.length > 0 && events[0].seq === 1 && state.seq > 1) app.clock.reset();
      apply(state, events);
      app.clock.heard(state.now);
      if (state.resets !== resets) {
        Object.assign(app.choice, { participant: '', message: 0 });
        app.lanes.reset();
      }
      app.lanes.update();
    },
  });
}

// loop draws with each frame, and updates the elements now and then: also when nothing has happened,
// because leases have less and less time left.
function loop(app, parts) {
  let updated = 0;
  const frame = (at) => {
    requestAnimationFrame(frame);
    app.lanes.frame(at);
    if (!app.urgent && at - updated < DOM_MS) return;
    updated = at;
    app.urgent = false;
    const now = app.clock.now();
    for (const part of parts) part.update(now);
    setData(document.body, 'seq', state.seq);
  };
  requestAnimationFrame(frame);
}

start();
