package oracle

// InTime checks that leaders are succeeded: after a step that takes leadership away
// (Acted), a newer token wins by the instant that the step names; after a tenure that ended
// by itself, if anybody wins at all, within the time to recover.
func InTime(h *History) []Violation {
	var out []Violation
	acted := map[int64]bool{}
	newest := int64(0)
	for i, e := range h.Events {
		switch {
		case e.Kind == Won:
			newest = max(newest, e.Token)
		case e.Kind == Acted && e.Until != 0:
			acted[e.Token] = true
			switch next := h.successor(i, e.Token); {
			case next == nil:
				out = append(out, violated("in time", e.At, "%s of token %d: nobody succeeded it", e.Text, e.Token))
			case next.At > e.Until:
				out = append(out, violated("in time", e.At, "%s of token %d: %s leads after %v, later than %v", e.Text, e.Token, next.Who, next.At-e.At, e.Until-e.At))
			}
		case e.Kind == Ended && !acted[e.Token] && newest <= e.Token: // else it has been succeeded
			if next := h.successor(i, e.Token); next != nil && next.At > e.At+h.recovery() {
				out = append(out, violated("in time", e.At, "token %d ended: %s leads after %v, later than %v", e.Token, next.Who, next.At-e.At, h.recovery()))
			}
		}
	}
	return out
}

// successor is the first win by a newer token than one, after an event; nil: there is none.
func (h *History) successor(i int, token int64) *Event {
	for j, e := range h.Events[i:] {
		if e.Kind == Won && e.Token > token {
			return &h.Events[i+j]
		}
	}
	return nil
}
