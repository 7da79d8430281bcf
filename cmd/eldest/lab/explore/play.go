package explore

import (
	"fmt"
	"slices"
	"strings"
)

// Play makes moves by their names, in order, and returns a line for each candidate as it is
// then, and one for each move that can come next. An error is a *ViolationError, or says that a
// move cannot be made.
func Play(l Limits, step Stepper, moves []string) (string, error) {
	w := newWorld(l)
	var way *trail
	for _, name := range moves {
		all := w.moves()
		n := slices.IndexFunc(all, func(m move) bool { return m.String() == name })
		if n < 0 {
			return w.describe(), fmt.Errorf("%q cannot happen here", name)
		}
		way = &trail{all[n], way}
		if err := all[n].do(w, step); err != nil {
			return w.describe(), way.violation(err)
		}
	}
	return w.describe(), nil
}

func (w *world) describe() string {
	var b strings.Builder
	for i := range w.parts {
		s := w.parts[i].state
		fmt.Fprintf(&b, "%s is %v", key(i), s.Phase)
		if s.Token > 0 {
			fmt.Fprintf(&b, " with %d", s.Token)
		}
		if s.Phase > 0 && s.Want > 0 {
			fmt.Fprintf(&b, ", wants to %v", s.Want)
		}
		if len(s.Position.Elders) > 0 {
			fmt.Fprintf(&b, ", behind %s (%d)", s.Position.Elders[0].Key, s.Position.Elders[0].Token)
		}
		if u := w.parts[i].under; u != nil {
			fmt.Fprintf(&b, "; %v is under way", u.ask.Request)
		}
		if s.Paused {
			b.WriteString("; pauses")
		}
		if s.Doomed > 0 {
			fmt.Fprintf(&b, "; up to %d is given up", s.Doomed)
		}
		b.WriteString("\n")
	}
	return b.String()
}
