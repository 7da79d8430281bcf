// Light and dark: as the system says, until the user chooses one. The choice is stored.

const STORED = 'eldest-lab-theme';

// remembered and remember are for small choices of the user. A browser may refuse to store them.
export function remembered(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // The choice lasts until the page is closed.
  }
}

const dark = window.matchMedia('(prefers-color-scheme: dark)');

// startTheme applies the stored choice, and calls changed now and after each change.
export function startTheme(changed) {
  const stored = remembered(STORED);
  if (stored === 'light' || stored === 'dark') document.documentElement.dataset.theme = stored;
  dark.addEventListener('change', changed);
  changed();
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : dark.matches;
}

// toggleTheme changes from light to dark, or back.
export function toggleTheme() {
  const next = isDark() ? 'light' : 'dark';
  document.documentElement.dataset.theme = next;
  remember(STORED, next);
  return next;
}

// palette reads the colours of the style sheet, for the canvas.
export function palette() {
  const probe = document.body.appendChild(document.createElement('i'));
  const style = getComputedStyle(probe);
  const colour = (name) => {
    probe.style.color = `var(${name})`;
    return style.color; // of light-dark(), the one that is used
  };
  const colours = {};
  for (const name of ['panel', 'sunken', 'ink', 'muted', 'line', 'accent', 'accent-soft', 'event']) {
    colours[name] = colour(`--${name}`);
  }
  for (const name of ['leader', 'waiting', 'suspended', 'stopped', 'dead', 'bad', 'ok']) {
    colours[name] = colour(`--${name}`);
    colours[`${name}-soft`] = colour(`--${name}-soft`);
    colours[`${name}-text`] = colour(`--${name}-text`);
  }
  probe.remove();
  return colours;
}
