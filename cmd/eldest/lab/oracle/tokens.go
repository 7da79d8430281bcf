package oracle

import "time"

// Tokens checks that tokens rise in the order of wins, and that none leads on whose token is older than
// that of a win. A win may be told late, and
// after a newer one, where the winner was kept from telling it: it was stopped
// during its campaign, or while it was suspended, or its key was taken away by hand before it told. Every other
// winner tells within its lease, and nobody newer wins before that is over.
func Tokens(h *History) []Violation {
	var out []Violation
	var newest *spell
	stops := h.stops()
	for _, t := range h.spells() {
		since := t.joined
		for _, s := range t.spells {
			if s.suspended != nil && s.suspended.Seq < t.from.Seq {
				since = s.suspended.At
			}
		}
		switch {
		case newest == nil || t.token > newest.token || t.tenure == newest.tenure:
			newest = t
		case t.takenBefore() || stopped(stops[t.who], since, t.from.At):
		default:
			out = append(out, violated("tokens", t.from.At, "%s %s with token %d after %s had won with token %d", t.who, t.from.Kind, t.token, newest.who, newest.token))
		}
	}
	return out
}

func stopped(stops []stop, from, till time.Duration) bool {
	for _, s := range stops {
		if s.overlaps(from, till) {
			return true
		}
	}
	return false
}
