// The two dialogs: a confirmation, and the help.
import { h } from './dom.js';

const confirmation = document.getElementById('confirm');
const help = document.getElementById('help');
let answered = null; // called with the answer to the question that is shown

// confirm asks { title, facts, text, yes }, and returns whether the user agreed. Escape is no.
export function confirm({ title, facts, text, yes }) {
  if (answered) answered(false);
  confirmation.querySelector('h2').textContent = title;
  const rows = facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]);
  confirmation.querySelector('dl').replaceChildren(...rows);
  confirmation.querySelector('.confirm-text').textContent = text;
  const agree = confirmation.querySelector('[data-action="confirm-yes"]');
  agree.textContent = yes;
  if (!confirmation.open) confirmation.showModal();
  confirmation.querySelector('[data-action="confirm-no"]').focus();
  return new Promise((resolve) => {
    answered = (value) => {
      answered = null;
      if (confirmation.open) confirmation.close();
      resolve(value);
    };
  });
}

// startDialogs handles the buttons of the dialogs.
export function startDialogs(app) {
  confirmation.addEventListener('close', () => answered && answered(false));
  app.handle({
    'confirm-yes': () => answered && answered(true),
    'confirm-no': () => answered && answered(false),
    help: openHelp,
    'close-help': () => help.close(),
  });
}

export function openHelp() {
  if (!help.open) help.showModal();
}

export function dialogOpen() {
  return confirmation.open || help.open;
}
