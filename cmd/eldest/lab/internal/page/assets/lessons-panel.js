// The lessons: a list, and the chosen one with its question. What there is to see is hidden until the
// reader asks for it.
import { button, h, setAttr, setData, show } from './dom.js';
import { play } from './actions.js';
import { otherSetup, takesOut } from './setups.js';
import { remember, remembered } from './theme.js';

const STORED = 'eldest-lab-lesson';

export async function lessonsPanel(root, app) {
  const list = root.querySelector('.lessons-list');
  const view = root.querySelector('.lesson');
  const all = root.querySelector('.lessons-all');
  const empty = root.querySelector('.lessons-empty');
  let lessons = [];
  let chosen = '';

  try {
    ({ lessons } = await import('./lessons.js'));
  } catch (err) {
    app.say(`The lessons could not be loaded: ${err.message}`, 'bad');
  }
  show(empty, lessons.length === 0);

  function choose(id) {
    const lesson = lessons.find((l) => l.id === id);
    chosen = lesson ? id : '';
    remember(STORED, chosen);
    view.replaceChildren();
    view.dataset.lesson = chosen;
    if (lesson) view.append(...contents(lesson, app));
    show(view, Boolean(lesson));
    all.open = !lesson; // the list makes room for the lesson
    for (const b of list.querySelectorAll('[data-action="lesson"]')) {
      setAttr(b, 'aria-pressed', String(b.dataset.lesson === chosen));
    }
  }

  app.handle({
    lesson: (el) => {
      const inside = all.contains(document.activeElement);
      choose(el.dataset.lesson === chosen ? '' : el.dataset.lesson);
      if (!chosen) return;
      if (inside) all.querySelector('summary').focus({ preventScroll: true });
      root.scrollIntoView({ block: 'nearest' });
    },
    'lesson-setup': (el) => begin(el, (lesson) => lesson.setup),
    'lesson-other': (el) => begin(el, (lesson) => otherSetup(lesson, app.info.rules || [])),
    'lesson-see': (el) => {
      const see = view.querySelector('.lesson-see');
      show(see, see.hidden);
      setAttr(el, 'aria-expanded', String(!see.hidden));
      if (!see.hidden) see.scrollIntoView({ block: 'nearest' });
    },
  });

  // Opened again, the list shows where the chosen lesson is.
  all.addEventListener('toggle', () => {
    const row = all.open && list.querySelector('[aria-pressed="true"]');
    if (row) row.scrollIntoView({ block: 'nearest' });
  });

  async function begin(el, scenarioOf) {
    const lesson = lessons.find((l) => l.id === el.dataset.lesson);
    if (!lesson || el.getAttribute('aria-busy') === 'true') return;
    setAttr(el, 'aria-busy', 'true');
    if (await play(app, scenarioOf(lesson))) begun();
    setAttr(el, 'aria-busy', null);
  }

  const group = (title, all) => (all.length > 0 ? [h('li', { class: 'group-title' }, title), ...all.map(create)] : []);
  list.append(
    ...group('The book, chapter by chapter', lessons.filter((l) => l.chapter > 0)),
    ...group('What breaks, and what does not', lessons.filter((l) => !l.chapter)));
  choose(remembered(STORED) || '');
}

// begun makes room for a lesson, whose texts say "add a candidate" and mean one of Eldest.
function begun() {
  show(document.getElementById('intro'), false);
  const kind = document.querySelector('#participants [data-field="kind"]');
  kind.selectedIndex = Math.max(0, [...kind.options].findIndex((o) => o.value === 'eldest'));
  kind.dispatchEvent(new Event('change', { bubbles: true })); // offers its rules, and chooses all of them
}

function create(lesson) {
  const [mark, tip] = lesson.chapter > 0
    ? [String(lesson.chapter), `Chapter ${lesson.chapter} of the book.`]
    : ['★', 'What breaks without a rule, and what does not.'];
  return h('li', {}, h('button', {
    type: 'button', class: 'row', 'aria-pressed': 'false', data: { action: 'lesson', lesson: lesson.id, tip },
  }, h('span', { class: 'chapter', 'aria-hidden': 'true' }, mark), h('span', { class: 'row-text' }, lesson.title)));
}

function contents(lesson, app) {
  const out = takesOut(lesson.setup);
  const items = (texts) => (texts || []).map((text) => h('li', {}, text));
  const see = h('div', { class: 'lesson-see', hidden: true, id: 'lesson-see' },
    h('h4', {}, 'What to see'), h('ul', {}, ...items(lesson.see)));
  const rule = lesson.rule ? (app.info.rules || []).find((r) => r.name === lesson.rule) : null;
  const setup = button('lesson-setup', lesson.rule && out ? 'Set it up, without the rule' : 'Set it up', {
    tip: 'Begin anew with the participants of this lesson. The present ones end.',
    data: { lesson: lesson.id }, kind: 'primary',
  });
  const other = lesson.rule ? button('lesson-other', out ? 'Set it up, with the rule' : 'Set it up, without the rule', {
    tip: out ? 'The same with all rules of the code.' : 'The same without the rule of the code.',
    data: { lesson: lesson.id },
  }) : null;
  const where = lesson.chapter > 0 ? `Chapter ${lesson.chapter} of the book: ` : 'More: ';
  const ask = button('lesson-see', 'What to see', { data: { lesson: lesson.id } });
  ask.setAttribute('aria-expanded', 'false');
  ask.setAttribute('aria-controls', 'lesson-see');
  setData(ask, 'tip', 'Show the answer. Try first.');
  return [
    h('h3', {}, lesson.title),
    h('p', { class: 'question' }, lesson.question),
    rule ? h('p', { class: 'hint' }, `The rule ${rule.name}. Without it: ${rule.text}`) : null,
    h('div', { class: 'buttons' }, setup, other),
    h('h4', {}, 'Try'),
    h('ol', {}, ...items(lesson.try)),
    h('div', { class: 'buttons' }, ask),
    see,
    lesson.book ? h('p', { class: 'hint' }, where, h('code', {}, lesson.book)) : null,
  ].filter(Boolean);
}
