package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// I3 checks: in the order of mod revisions the tokens of committed writes never
// decrease, and nobody takes the data away ([Rising]); an acknowledged write is there, where
// and as its writer was told ([Kept]), a refused one never ([Refusals]), and no write,
// whatever its writer was told, is there twice or was never asked for ([Once]).
func I3(h *History) []Violation {
	return slices.Concat(Rising(h), Kept(h), Refusals(h), Once(h))
}

// Rising is the part of I3 about the order of writes. Where tenures are opened by a first
// write of their own (About.Opens), it comes once, and before all others.
func Rising(h *History) []Violation {
	var out []Violation
	for _, c := range h.Changes {
		if h.isRegister(c.Key) && c.byNobody() {
			out = append(out, violated("I3", c.At, "the data was deleted at %d, and what was acknowledged with it", c.Rev))
		}
	}
	last, opened := int64(0), map[int64]bool{}
	for _, c := range h.commits() {
		if c.token < last {
			out = append(out, violated("I3", c.At, "write %s of token %d committed at %d after one of token %d", c.name, c.token, c.Rev, last))
		}
		last = max(last, c.token)
		switch {
		case c.Opens && opened[c.token]:
			out = append(out, violated("I3", c.At, "the tenure of token %d was opened twice, at %d again", c.token, c.Rev))
		case h.Opens && !c.Opens && !opened[c.token]:
			out = append(out, violated("I3", c.At, "write %s committed at %d, and its tenure, token %d, had not been opened", c.name, c.Rev, c.token))
		}
		opened[c.token] = opened[c.token] || c.Opens
	}
	return out
}

// Kept is the part of I3 about what was acknowledged.
func Kept(h *History) []Violation {
	var out []Violation
	commits, wanted := h.byName(), map[string]string{}
	for _, e := range h.Events {
		if e.Kind == Sent {
			wanted[e.Write] = e.Text
		}
		if e.Kind != Acked {
			continue
		}
		there := commits[e.Write]
		if len(there) == 0 {
			out = append(out, violated("I3", e.At, "write %s was acknowledged to %s and is not there", e.Write, e.Who))
			continue
		}
		switch c := there[0]; {
		case len(there) > 1: // Once reports it
		case e.Commit != 0 && e.Commit != c.Rev, e.Token != 0 && e.Token != c.token:
			out = append(out, violated("I3", e.At, "write %s was acknowledged at revision %d with token %d, and is there at %d with %d", e.Write, e.Commit, e.Token, c.Rev, c.token))
		case c.Did != "" && c.Did != wanted[e.Write]:
			out = append(out, violated("I3", e.At, "write %s asked for %s, and %s was carried out", e.Write, wanted[e.Write], c.Did))
		}
	}
	return out
}

// Refusals is the part of I3 about what was refused.
func Refusals(h *History) []Violation {
	var out []Violation
	commits := h.byName()
	for _, e := range h.Events {
		if there := commits[e.Write]; e.Kind == Refused && len(there) > 0 {
			out = append(out, violated("I3", e.At, "write %s was refused to %s and applied all the same, at %s", e.Write, e.Who, revisions(there)))
		}
	}
	return out
}

// Once is the part of I3 about all writes.
func Once(h *History) []Violation {
	var out []Violation
	sent := map[string]bool{}
	for _, e := range h.Events {
		sent[e.Write] = sent[e.Write] || e.Kind == Sent
	}
	commits := h.byName()
	for _, name := range slices.Sorted(maps.Keys(commits)) {
		there := commits[name]
		if len(there) > 1 {
			out = append(out, violated("I3", end(h), "write %s was applied %d times, at %s", name, len(there), revisions(there)))
		}
		if !sent[name] {
			out = append(out, violated("I3", end(h), "write %s was applied, at %s, and was never sent", name, revisions(there)))
		}
	}
	return out
}

// revisions renders where writes are.
func revisions(there []commit) string {
	s := "revision"
	for i, c := range there {
		if i > 0 {
			s += " and"
		}
		s += fmt.Sprintf(" %d", c.Rev)
	}
	return s
}

// end is the instant of the last event.
func end(h *History) time.Duration {
	if n := len(h.Events); n > 0 {
		return h.Events[n-1].At
	}
	return 0
}
