// The keyboard: keys that act on the participant that is chosen. The help dialog lists them.
import { dialogOpen, openHelp } from './dialogs.js';
import { shown } from './state.js';

// typing reports whether a key belongs to the element that has the focus.
function typing(el) {
  return el instanceof Element && el.closest('input, textarea, select, [contenteditable]') !== null;
}

// presses reports whether the space bar presses the element that has the focus.
function presses(el) {
  return el instanceof Element && el.closest('button, summary, a, label') !== null;
}

export function startKeys(app) {
  document.addEventListener('keydown', (e) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || e.repeat) return;
    if (dialogOpen() || typing(e.target)) return;
    if (e.key === '?') {
      e.preventDefault();
      openHelp();
      return;
    }
    if (e.key === ' ') {
      if (presses(e.target)) return;
      e.preventDefault();
      app.run('pause');
      return;
    }
    if (app.info.mode !== 'sandbox') return;
    if (/^[1-9]$/.test(e.key)) {
      const p = shown(app.state)[Number(e.key) - 1];
      if (p) app.choose({ participant: p.who, message: 0 });
      return;
    }
    const actionOf = ACTIONS[e.key];
    if (!actionOf) return;
    e.preventDefault();
    const p = app.state.participants.get(app.choice.participant);
    if (!p || p.left !== null) {
      app.say('Choose a participant first: with the keys 1 to 9, or with a click on its name.', 'bad');
      return;
    }
    app.act({ ...actionOf(p.state), on: p.who });
  });
}

const ACTIONS = {
  k: (s) => ({ do: s.life === 'dead' ? 'restart' : 'kill' }),
  s: (s) => ({ do: s.life === 'stopped' ? 'continue' : 'stop' }),
  c: (s) => (s.cut || s.delay_ms || s.lose_reply ? { do: 'heal' } : { do: 'cut', way: 'both' }),
  h: (s) => ({ do: s.hold ? 'unhold' : 'hold' }),
  t: () => ({ do: 'transfer' }),
};
