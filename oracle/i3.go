package oracle

import (
	"maps"
	"slices"
	"time"
)

// I3 checks: in the order of mod revisions the tokens of committed writes never
// decrease, and nobody takes the data away; an acknowledged write is there exactly once,
// where its writer was told, a refused one never, an unclear one (or one whose writer
// died) at most once.
func I3(h *History) []Violation {
	var out []Violation
	commits := map[string][]Change{}
	last := int64(0)
	for _, c := range h.Changes {
		switch {
		case c.Key != h.Data:
			continue
		case c.Deleted:
			out = append(out, violated("I3", c.At, "the data was deleted at %d, and what was acknowledged with it", c.Rev))
			continue
		}
		token, name, ok := parseWrite(c.Value)
		if !ok {
			continue // I2 reports it
		}
		commits[name] = append(commits[name], c)
		if token < last {
			out = append(out, violated("I3", c.At, "write %s of token %d committed at %d after one of token %d", name, token, c.Rev, last))
		}
		last = max(last, token)
	}
	sent, told := map[string]bool{}, map[string]bool{}
	for _, e := range h.Events {
		there := commits[e.Write]
		switch e.Kind {
		case Sent:
			sent[e.Write] = true
			continue
		case Acked:
			switch {
			case len(there) != 1:
				out = append(out, violated("I3", e.At, "acknowledged write %s is there %d times", e.Write, len(there)))
			case e.Commit != 0 && e.Commit != there[0].Rev:
				out = append(out, violated("I3", e.At, "write %s was acknowledged at revision %d and committed at %d", e.Write, e.Commit, there[0].Rev))
			}
		case Refused:
			if len(there) != 0 {
				out = append(out, violated("I3", e.At, "refused write %s is there %d times", e.Write, len(there)))
			}
		case Unclear:
			if len(there) > 1 {
				out = append(out, violated("I3", e.At, "write %s of unknown outcome is there %d times", e.Write, len(there)))
			}
		default:
			continue
		}
		told[e.Write] = true
	}
	for _, name := range slices.Sorted(maps.Keys(commits)) {
		if n := len(commits[name]); n > 1 && !told[name] {
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
