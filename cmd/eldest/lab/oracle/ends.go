package oracle

import (
	"maps"
	"math"
	"slices"
	"time"
)

const (
	// soon is how fast a removal by hand must be noticed if no fault delays that. The event takes
	// microseconds; the second is for a renewal's answer.
	soon = time.Second
	// wakeup is how soon a process that continues must have made the reports that were due
	// meanwhile: it needs no other process for that.
	wakeup = time.Millisecond
)

// I6 checks the order candidate, leader, end. A campaign ends once, in an error or a win; a tenure
// ends once; and the end is reported in time: before the key is deleted if the server deleted it
// (expiry), and soon after it is deleted if another client deleted it and the network had no fault.
// If a key is deleted while its tenure is suspended nothing need be reported: it does not lead. A
// process that is stopped at that time reports as soon as it continues.
func I6(h *History) []Violation {
	out := found{"I6", Order(h)}
	q, stops := h.queue(), h.stops()
	tenures, _ := h.tenures()
	for _, t := range tenures {
		if len(t.ended) > 1 {
			out.add(t.ended[1].At, "%s reported the end of token %d %d times", t.who, t.token, len(t.ended))
		}
		l := q.byToken(t.token)
		if l == nil || !l.removed || t.taken != nil && !t.taken.Clear {
			continue // I4 reports a win without a key
		}
		due := l.died
		if t.taken != nil {
			due = max(l.died, t.won.At) + soon
		}
		for _, s := range stops[t.who] {
			if s.from <= due && due <= s.till {
				if due = s.till; due < math.MaxInt64 {
					due += wakeup
				}
			}
		}
		if s := t.at(due).suspended; t.taken == nil && s != nil && s.At <= due || t.crashed != nil && t.crashed.At <= due {
			continue // dead processes need not report
		}
		when := "never"
		if len(t.ended) > 0 {
			when = "at " + t.ended[0].At.String()
		}
		if len(t.ended) == 0 || t.ended[0].At > due {
			out.add(due, "%s (token %d) lost its key at %v and reported its end %s", t.who, t.token, l.died, when)
		}
	}
	// A candidate whose key was removed by hand while it waited.
	all := stands{}
	for i, e := range h.Events {
		all.add(e)
		l := q.byToken(e.Token)
		if e.Kind != Removed || !e.Clear || l == nil || !l.removed {
			continue
		}
		for _, who := range slices.Sorted(maps.Keys(all)) {
			if all[who].phase != Joined || all[who].lease != l.lease {
				continue
			}
			next := slices.IndexFunc(h.Events[i:], func(e Event) bool {
				return e.Who == who && (e.Kind == Failed || e.Kind == Won || e.Kind == Crashed)
			})
			if next < 0 || h.Events[i+next].At > l.died+soon {
				out.add(e.At+soon, "%s continued to wait without a key (create %d, removed at %v)", who, l.create, l.died)
			}
		}
	}
	return out.all
}

// Order checks the part of I6 that needs no instants: each report of a participant follows from its
// earlier reports. A lead function does not begin, nor is its tenure resumed, before the last one
// has returned (G7).
func Order(h *History) []Violation {
	out := found{invariant: "I6"}
	phase, token := map[string]Kind{}, map[string]int64{}
	serves := map[string]bool{} // a lead function runs (G7)
	for _, e := range h.Events {
		bad, last, same := false, phase[e.Who], token[e.Who] == e.Token
		switch e.Kind {
		case Joined:
			bad = last != ""
			phase[e.Who] = Joined
		case Failed:
			bad = last != Joined
			phase[e.Who] = ""
		case Won:
			bad = last != Joined
			phase[e.Who], token[e.Who] = Won, e.Token
		case Ended:
			bad = last != Won && last != Suspended || !same
			phase[e.Who] = ""
		case Suspended:
			bad = last != Won || !same
			phase[e.Who] = Suspended
		case Resumed:
			bad = last != Suspended || !same || serves[e.Who]
			phase[e.Who] = Won
		case Serving, Served:
			bad = serves[e.Who] == (e.Kind == Serving)
			serves[e.Who] = e.Kind == Serving
		case Stuck:
			out.add(e.At, "%s was ordered to leave and did not end", e.Who)
		}
		if bad {
			out.add(e.At, "%s: %q does not follow from its state", e.Who, e.Kind)
		}
	}
	return out.all
}

const (
	// handover is how soon a successor with a good network must lead.
	handover = 100 * time.Millisecond
	// aftermath is how long a fault of the network may have effects after it ended: gRPC dials
	// again with a back-off of its own.
	aftermath = 8 * time.Second
	// yielding is how much longer a candidate that yields may be at the head of the queue.
	yielding = time.Second
)

// I7 checks that what works keeps working. No participant loses a session, is suspended or is
// evicted unless something was wrong with its host or the server within the TTL (one lost reply
// does not count as wrong). With a session, no participant ends its candidacy or tenure unless it
// was ordered to, its key was removed, it was evicted, it yielded instead of leading on after a
// suspension, or a faulty server refused it. And a candidate that becomes the oldest with nothing
// wrong leads within a tenth of a second; or it must yield, and has yielded, or leads nevertheless,
// within a second more.
func I7(h *History) []Violation {
	out := found{invariant: "I7"}
	q := h.queue()
	joined, owner := map[string]Event{}, map[int64]string{}
	told, removed := map[string]bool{}, map[int64]bool{}
	// yields has the suspended participants: true for one that has yielded since, with a new key.
	yields := map[string]bool{}
	// troubled reports whether something was wrong with a participant in the last TTL.
	troubled := func(who string, at time.Duration) bool { return h.Troubled(who, at-h.TTL, at) }
	for _, e := range h.Events {
		switch e.Kind {
		case Joined:
			joined[e.Who], owner[e.Lease], told[e.Who] = e, e.Who, false
			delete(yields, e.Who)
		case Leaving, Resigning:
			told[e.Who] = true
		case Removed:
			removed[LeaseOf(e.Key)] = true
		case Resumed:
			delete(yields, e.Who)
		case Yielded:
			if _, suspended := yields[e.Who]; suspended {
				yields[e.Who] = true
			}
		case Suspended:
			yields[e.Who] = false
			if !troubled(e.Who, e.At) {
				out.add(e.At, "%s was suspended although nothing was wrong: %s", e.Who, e.Text)
			}
		case Evicted:
			who := owner[LeaseOf(e.Key)]
			if !troubled(who, e.At) && !h.reports(who, 0, e.At, Crashed) {
				out.add(e.At, "%s evicted %s (token %d), with which nothing was wrong", e.Who, who, e.Token)
			}
		case Failed, Ended:
			j := joined[e.Who]
			refused := e.Denied && h.Troubled("", e.At, e.At)
			evicted := j.Beat > 0 && troubled(e.Who, e.At) && slices.ContainsFunc(q, func(l *life) bool {
				return l.lease == j.Lease && l.removed && l.died >= j.At && l.died <= e.At
			})
			switch {
			case removed[j.Lease]:
			case e.Lost && !troubled(e.Who, e.At):
				out.add(e.At, "%s lost its session although nothing was wrong: %s", e.Who, e.Text)
			case !e.Lost && !told[e.Who] && !refused && !evicted && !yields[e.Who]:
				out.add(e.At, "%s ended its candidacy with a live session, without an order: %s", e.Who, e.Text)
			}
		}
	}
	var since time.Duration // when the last of the older ones was deleted
	for _, l := range q {
		turn := max(since, l.born)
		since = max(since, l.died)
		if !l.removed {
			since = math.MaxInt64 // no younger candidate can lead
		}
		who := "" // the participant that then campaigns, or leads already, with this lease
		for _, e := range h.Events {
			switch {
			case e.At > turn:
			case e.Kind == Joined && e.Lease == l.lease:
				who = e.Who
			case e.Who == who && (e.Kind == Failed || e.Kind == Crashed):
				who = ""
			}
		}
		due := turn + handover
		if h.reports(who, turn, due, Yielded) {
			due += yielding
		}
		leads := slices.ContainsFunc(h.Events, func(e Event) bool {
			return e.claim() == claim{who, l.create} && e.Kind == Won && e.At <= due
		})
		switch {
		case turn == math.MaxInt64 || l.removed && l.died <= due || who == "" || due > h.end():
		case leads || h.Troubled(who, turn, due) || h.reports(who, turn, due, Failed, Crashed):
		default:
			out.add(due, "%s (create %d) was the oldest at %v, with nothing wrong, and did not lead by %v", who, l.create, turn, due)
		}
	}
	return out.all
}

// Troubled reports whether something was wrong with who's connection to the server, or may still
// have had effects, at any time in [from, to].
func (h *History) Troubled(who string, from, to time.Duration) bool {
	return slices.ContainsFunc(h.Events, func(e Event) bool {
		return e.Kind == Trouble && (e.Who == who || e.Who == "") && e.At <= to && e.Until+aftermath >= from
	})
}

// reports reports whether who has reported one of kinds in [from, to].
func (h *History) reports(who string, from, to time.Duration, kinds ...Kind) bool {
	return slices.ContainsFunc(h.Events, func(e Event) bool {
		return e.Who == who && e.At >= from && e.At <= to && slices.Contains(kinds, e.Kind)
	})
}
