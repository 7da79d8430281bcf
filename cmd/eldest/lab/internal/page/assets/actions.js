// What was done: a list, and the scenario that does the same again.
import { h, keyed, setText, show } from './dom.js';
import { get, post } from './feed.js';
import { clockTime, describe } from './words.js';

const MOST = 150; // rows

export function donePanel(root, app) {
  const list = root.querySelector('.done-list');
  const empty = root.querySelector('.done-empty');
  const text = root.querySelector('[data-field="scenario"]');
  const details = root.querySelector('.scenario');

  const scenario = async () => JSON.stringify(await get('/done'), null, 2);

  app.handle({
    'copy-scenario': async () => {
      let copied = '';
      try {
        copied = await scenario();
        await navigator.clipboard.writeText(copied);
        app.say('The scenario was copied.');
      } catch (err) {
        if (copied === '') {
          app.say(`Copying the scenario: ${err.message}`, 'bad');
          return;
        }
        // The browser did not permit it: the text is shown, to be copied by hand.
        if (!text) {
          app.say('The browser did not permit to copy. Download the scenario instead.', 'bad');
          return;
        }
        details.open = true;
        text.value = copied;
        text.focus();
        text.select();
        app.say('The browser did not permit to copy. The scenario is selected: copy it by hand.');
      }
    },
    'download-scenario': async () => {
      try {
        const url = URL.createObjectURL(new Blob([`${await scenario()}\n`], { type: 'application/json' }));
        const a = h('a', { href: url, download: 'scenario.json' });
        document.body.append(a);
        a.click();
        a.remove();
        setTimeout(() => URL.revokeObjectURL(url), 10_000);
      } catch (err) {
        app.say(`Downloading the scenario: ${err.message}`, 'bad');
      }
    },
    'paste-scenario': async () => {
      try {
        text.value = await navigator.clipboard.readText();
      } catch {
        app.say('The browser did not permit to read the clipboard. Paste into the field by hand.', 'bad');
        text.focus();
      }
    },
    'play-scenario': async () => {
      let parsed;
      try {
        parsed = JSON.parse(text.value);
      } catch (err) {
        app.say(`This is no scenario: ${err.message}`, 'bad');
        text.focus();
        return;
      }
      await play(app, parsed);
    },
    reset: (el) => app.act({ do: 'reset' }, el),
  });

  return {
    update() {
      const all = app.state.actions;
      show(empty, all.length === 0);
      const rows = all.slice(-MOST).reverse();
      keyed(list, rows, (a) => a.seq, create, (li, a) => setText(li.firstElementChild, clockTime(a.at - app.state.begin)));
    },
  };
}

function create(a) {
  const error = a.error ? h('span', { class: 'done-error' }, ` – ${a.error}`) : null;
  return h('li', { class: a.error ? 'done failed' : 'done', data: { do: a.action.do, on: a.action.on } },
    h('span', { class: 'number done-at' }),
    h('span', { class: 'done-text' }, describe(a.action), error));
}

// play begins a scenario, and returns whether it was accepted.
export async function play(app, scenario) {
  try {
    await post('/play', scenario);
    app.say(scenario && scenario.name ? `Begun: ${scenario.name}.` : 'The scenario has begun.');
    return true;
  } catch (err) {
    app.say(`Playing the scenario: ${err.message}`, 'bad');
    return false;
  }
}
