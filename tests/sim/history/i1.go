package history

// I1 checks: one leader by real time. The interval of a tenure begins with the win and
// ends at the first instant at which the holder is no longer sure, gives up or
// is gone. No win may fall into the interval of another tenure. No pause, clock
// or network excuses it; only the removal of the key or lease by somebody else
// does, which neither an old leader nor a new one can know before the news reach
// it (I6 says how soon it must know).
func I1(h *History) []Violation {
	var out []Violation
	all := h.tenures()
	for _, a := range all {
		for _, b := range all {
			if b == a || b.won.Seq < a.won.Seq {
				continue
			}
			if a.unsure != nil && (a.unsure.Seq < b.won.Seq || asked(a, b) || lapsed(h, a, b)) {
				continue
			}
			if a.taken != nil && a.taken.Seq < b.won.Seq || b.takenBefore() {
				continue
			}
			out = append(out, violated("I1", b.won.At, "%s won (token %d) while %s (token %d) still led%s",
				b.who, b.token, a.who, a.token, until(a)))
		}
	}
	return out
}

// asked reports whether b's win itself was the occasion on which a was asked and
// turned out not to be sure any more: a's interval ended before it was asked,
// and at the latest at this instant. (Had it still been sure, the log would have
// Held in place of LetGo, and a's interval would end later.)
func asked(a, b *tenure) bool {
	return a.unsure.Kind == LetGo && a.unsure.At == b.won.At
}

// lapsed reports whether a's session ended by itself at the very instant of b's win
// and only the telling came after it: without distances a holder that lets its lease
// go, and the server that hears of it, are one instant, in which the log's order is
// that of the scheduler. Had a still been sure when it was asked at the win, the log
// would have Held.
func lapsed(h *History, a, b *tenure) bool {
	if a.unsure.Kind != Ended || !a.unsure.Lost || a.unsure.At != b.won.At {
		return false
	}
	for _, e := range h.Events {
		if e.Kind == Held && e.Who == a.who && e.Token == a.token && e.Seq > b.won.Seq {
			return false
		}
	}
	return true
}

// until says when an interval ended, for the text of a violation.
func until(t *tenure) string {
	if t.unsure == nil {
		return ", and to the end of the run"
	}
	return ", until " + t.unsure.At.String() + " (" + string(t.unsure.Kind) + ")"
}
