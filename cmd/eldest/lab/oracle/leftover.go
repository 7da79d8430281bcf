package oracle

// Leftovers reports whatever the harness found when everybody had gone.
func Leftovers(h *History) []Violation {
	var out []Violation
	for _, e := range h.Events {
		if e.Kind == Left {
			out = append(out, violated("left", e.At, "%s is left although everybody has gone", e.Text))
		}
	}
	return out
}
