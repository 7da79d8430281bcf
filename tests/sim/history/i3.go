package history

import "time"

// I3 checks: in the order of mod revisions the tokens of committed writes never
// decrease; an acknowledged write is there exactly once, a refused one never,
// an unclear one (or one whose writer died) at most once.
func I3(h *History) []Violation {
	var out []Violation
	commits := map[string]int{}
	last := int64(0)
	for _, c := range h.Changes {
		if c.Key != h.Data || c.Deleted {
			continue
		}
		token, name, ok := parseWrite(c.Value)
		if !ok {
			continue // I2 reports it
		}
		commits[name]++
		if token < last {
			out = append(out, violated("I3", c.At, "write %s of token %d committed at %d after one of token %d", name, token, c.Rev, last))
		}
		last = max(last, token)
	}
	sent, outcome := map[string]bool{}, map[string]Event{}
	for _, e := range h.Events {
		switch e.Kind {
		case Sent:
			sent[e.Write] = true
		case Acked, Refused, Unclear:
			outcome[e.Write] = e
		}
	}
	for name, e := range outcome {
		n := commits[name]
		switch {
		case e.Kind == Acked && n != 1:
			out = append(out, violated("I3", e.At, "acknowledged write %s is there %d times", name, n))
		case e.Kind == Refused && n != 0:
			out = append(out, violated("I3", e.At, "refused write %s is there %d times", name, n))
		}
	}
	for name, n := range commits {
		if n > 1 && outcome[name].Kind != Acked && outcome[name].Kind != Refused {
			out = append(out, violated("I3", end(h), "write %s of unknown outcome is there %d times", name, n))
		}
		if !sent[name] {
			out = append(out, violated("I3", end(h), "write %s is there and was never sent", name))
		}
	}
	return out
}

// end is the instant of the last event.
func end(h *History) time.Duration {
	if n := len(h.Events); n > 0 {
		return h.Events[n-1].At
	}
	return 0
}
