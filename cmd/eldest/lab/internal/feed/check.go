package feed

import (
	"errors"
	"fmt"
)

// Bounds of actions and scenarios: the log keeps them, and every page gets them.
const (
	mostText        = 1 << 10 // bytes of a text
	mostKey         = 4 << 10 // bytes of a key
	mostBreakpoints = 32
)

// Check checks the size of an action, and that it is not Play, which is only in events. A source
// refuses an action that is not in order, and adds no event for it.
func (a Action) Check() error {
	if a.Do == Play {
		return errors.New("play is not an action: a scenario is sent to /play")
	}
	texts := append([]string{a.Do, a.On, string(a.Kind), a.Rule, a.Way, a.Match, a.Election}, a.Breakpoints...)
	for _, text := range texts {
		if len(text) > mostText {
			return fmt.Errorf("a text of %d bytes: want %d at most", len(text), mostText)
		}
	}
	switch {
	case len(a.Key) > mostKey:
		return fmt.Errorf("a key of %d bytes: want %d at most", len(a.Key), mostKey)
	case len(a.Breakpoints) > mostBreakpoints:
		return fmt.Errorf("%d breakpoints: want %d at most", len(a.Breakpoints), mostBreakpoints)
	}
	return nil
}

// Check checks the size of a scenario, and each of its actions as Action.Check does.
func (s Scenario) Check() error {
	switch {
	case len(s.Name) > mostText:
		return fmt.Errorf("the scenario's name has %d bytes: want %d at most", len(s.Name), mostText)
	case len(s.Steps) == 0:
		return errors.New("the scenario has no steps")
	}
	for i, step := range s.Steps {
		if err := step.Check(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}
