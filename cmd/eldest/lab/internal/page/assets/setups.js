// The setups of lessons, with a rule of the code and without it.

// takesOut reports whether a scenario takes a rule out of a participant.
export function takesOut(scenario) {
  return (scenario.steps || []).some((step) => step.rule);
}

// otherSetup returns the setup of a lesson with the rule put back or, if its steps have all rules,
// without the rule. rules are those of the sandbox: a rule is taken out only of the kinds to which it applies.
export function otherSetup(lesson, rules) {
  const out = takesOut(lesson.setup);
  const rule = rules.find((r) => r.name === lesson.rule);
  const applies = (step) => step.do === 'add' && (!rule || (rule.kinds || []).includes(step.kind));
  const steps = (lesson.setup.steps || []).map((step) => {
    const { rule: _, ...rest } = step;
    return !out && applies(step) ? { ...rest, rule: lesson.rule } : rest;
  });
  const name = lesson.setup.name || lesson.title;
  return { name: `${name}, ${out ? 'with all rules' : `without the rule ${lesson.rule}`}`, steps };
}
