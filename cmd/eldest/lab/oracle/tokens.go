package oracle

import "time"

// Tokens checks that tokens rise in the order of wins. A win may be told late, and
// after a newer one, where the winner was kept from telling it: it was stopped
// during its campaign, or its key was taken away by hand before it told. Every other
// winner tells within its lease, and nobody newer wins before that is over.
func Tokens(h *History) []Violation {
	var out []Violation
	var newest *tenure
	stops := h.stops()
	for _, t := range h.tenures() {
		switch {
		case newest == nil || t.token > newest.token:
			newest = t
		case h.takenEarlier(t) || stopped(stops[t.who], t.joined, t.won.At):
		default:
			out = append(out, violated("tokens", t.won.At, "%s won with token %d after %s had won with token %d", t.who, t.token, newest.who, newest.token))
		}
	}
	return out
}

// takenEarlier reports whether the key or lease of a win was taken away by hand
// before the win was told: it was true at its proof, and overtaken while the news
// were under way.
func (h *History) takenEarlier(t *tenure) bool {
	for _, e := range h.Events {
		if e.Seq >= t.won.Seq {
			return false
		}
		if e.Kind == Removed && e.takes(t) {
			return true
		}
	}
	return false
}

func stopped(stops []stop, from, till time.Duration) bool {
	for _, s := range stops {
		if s.overlaps(from, till) {
			return true
		}
	}
	return false
}
