package oracle

import "time"

// soon is how fast a removal by hand must be known where nothing stands in the
// way. The event takes microseconds; the second is for a renewal's answer.
const soon = time.Second

// I6 checks: candidate, leader, end. A campaign ends once, in an error or a win; a
// tenure ends once; and the end is told in time: before the key is gone
// whenever the server removed it (expiry), and soon after it is gone when
// somebody else removed it and the network was well. Of a key that goes while its tenure is
// suspended nothing need be told: it does not lead. Who is stopped at that time
// tells it as soon as it goes on.
func I6(h *History) []Violation {
	out := Order(h)
	q, stops := h.queue(), h.stops()
	for _, t := range h.tenures() {
		if len(t.ended) > 1 {
			out = append(out, violated("I6", t.ended[1].At, "%s told of the end of token %d %d times", t.who, t.token, len(t.ended)))
		}
		l := q.byToken(t.token)
		if l == nil || !l.removed || t.crash != nil {
			continue // I4 reports a win without a key; the dead owe nothing
		}
		due := l.died
		if t.taken != nil {
			if !t.taken.Clear {
				continue
			}
			due = max(l.died, t.won.At) + soon
		}
		due = awake(stops[t.who], due)
		if t.taken == nil && t.suspended(due) {
			continue
		}
		if len(t.ended) == 0 || t.ended[0].At > due {
			out = append(out, violated("I6", due, "%s (token %d) lost its key at %v and told of its end %s",
				t.who, t.token, l.died, told(t)))
		}
	}
	return append(out, waiters(h, q)...)
}

// told says when the end was told, for the text of a violation.
func told(t *tenure) string {
	if len(t.ended) == 0 {
		return "never"
	}
	return "at " + t.ended[0].At.String()
}

// suspended reports whether the tenure had told by an instant that it does not lead for now.
func (t *tenure) suspended(at time.Duration) bool {
	last := t.spells[0]
	for _, s := range t.spells {
		if s.from.At <= at {
			last = s
		}
	}
	return last.suspended != nil && last.suspended.At <= at
}

// Order checks the part of I6 that needs no instants: what each participant tells
// follows from what it told before. A lead function does not begin, nor does its tenure lead on,
// before the last one has returned (G7).
func Order(h *History) []Violation {
	var out []Violation
	state := map[string]Kind{}
	token := map[string]int64{}
	serves := map[string]bool{} // a lead function runs (G7)
	for _, e := range h.Events {
		bad, last := false, state[e.Who]
		switch e.Kind {
		case Joined:
			bad = state[e.Who] != ""
			state[e.Who] = Joined
		case Failed:
			bad = state[e.Who] != Joined
			state[e.Who] = ""
		case Won:
			bad = state[e.Who] != Joined
			state[e.Who], token[e.Who] = Won, e.Token
		case Ended:
			bad = last != Won && last != Suspended || token[e.Who] != e.Token
			state[e.Who] = ""
		case Suspended:
			bad = last != Won || token[e.Who] != e.Token
			state[e.Who] = Suspended
		case Resumed:
			bad = last != Suspended || token[e.Who] != e.Token || serves[e.Who]
			state[e.Who] = Won
		case Serving:
			bad = serves[e.Who]
			serves[e.Who] = true
		case Served:
			bad = !serves[e.Who]
			serves[e.Who] = false
		case Stuck:
			out = append(out, violated("I6", e.At, "%s was told to leave and did not come to its end", e.Who))
		}
		if bad {
			out = append(out, violated("I6", e.At, "%s: %q does not follow from its state", e.Who, e.Kind))
		}
	}
	return out
}

// waiters checks that a candidate whose key was removed by hand while it waited
// says so soon, where the network was well.
func waiters(h *History, q *queue) []Violation {
	var out []Violation
	for i, e := range h.Events {
		l := q.byToken(e.Token)
		if e.Kind != Removed || !e.Clear || l == nil || !l.removed {
			continue
		}
		who := waiting(h.Events[:i], l.lease)
		if who == "" {
			continue
		}
		if next := after(h.Events[i:], who); next == nil || next.At > l.died+soon {
			out = append(out, violated("I6", e.At+soon, "%s waited on without a key (create %d, removed at %v)", who, l.create, l.died))
		}
	}
	return out
}

// waiting returns who waits with the lease at the end of the events.
func waiting(events []Event, lease int64) string {
	who := ""
	for _, e := range events {
		switch {
		case e.Kind == Joined && e.Lease == lease:
			who = e.Who
		case e.Who == who && (e.Kind == Failed || e.Kind == Won || e.Kind == Crashed):
			who = ""
		}
	}
	return who
}

// after returns the first change of who's state.
func after(events []Event, who string) *Event {
	for i, e := range events {
		if e.Who == who && (e.Kind == Failed || e.Kind == Won || e.Kind == Crashed) {
			return &events[i]
		}
	}
	return nil
}
