package oracle

// I1 checks: one leader by real time. The interval of a spell begins with the win, or where a
// suspended tenure leads on, and ends at the first instant at which the holder is no longer sure, gives up or
// is gone. None may begin in the interval of another tenure's. No pause, clock
// or network excuses it; only the removal of the key or lease by somebody else
// does, which neither an old leader nor a new one can know before the news reach
// it (I6 says how soon it must know).
func I1(h *History) []Violation {
	var out []Violation
	all := h.spells()
	for _, a := range all {
		for _, b := range all {
			if b.tenure == a.tenure || b.from.Seq < a.from.Seq {
				continue
			}
			if a.unsure != nil && a.unsure.Seq < b.from.Seq && !sure(h, a, b) {
				continue
			}
			if a.taken != nil && a.taken.Seq < b.from.Seq || b.takenBefore() {
				continue
			}
			out = append(out, violated("I1", b.from.At, "%s %s (token %d) while %s (token %d) still led%s",
				b.who, b.from.Kind, b.token, a.who, a.token, until(a)))
		}
	}
	return out
}

// sure reports whether a was asked at b's win, between the moment at which b knew that
// it leads and the moment at which it told so, and was sure. Then the two led at one
// time, though a may have told of its end at the same instant and before b's telling.
//
// The question is also why nothing needs to be excused at one instant: a holder that
// lets its lease go, and the successor that hears of it, may be one instant where there
// are no distances, and in which order their goroutines then get to tell of it is the
// scheduler's affair. But whoever is asked and is not sure says so before the win.
func sure(h *History, a, b *spell) bool {
	for i := b.from.Seq - 2; i >= 0 && h.Events[i].At == b.from.At; i-- {
		if e := h.Events[i]; e.Kind == Held && e.Who == a.who && e.Token == a.token && e.By == b.who {
			return a.last(e.Seq) == a
		}
	}
	return false
}

// until says when an interval ended, for the text of a violation.
func until(t *spell) string {
	if t.unsure == nil {
		return ", and to the end of the run"
	}
	return ", until " + t.unsure.At.String() + " (" + string(t.unsure.Kind) + ")"
}
