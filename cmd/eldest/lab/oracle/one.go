package oracle

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// I1 checks that there is one leader by real time. The interval of a spell begins with the win, or
// when a suspended tenure is resumed, and ends at the first instant at which the holder is no
// longer sure, resigns or has crashed. None may begin in the interval of another tenure. No pause,
// clock or network is an excuse; only the removal of the key or lease by another client is, which
// neither an old leader nor a new one can notice before it is notified (I6 checks how soon it must
// notice).
func I1(h *History) []Violation {
	out := found{invariant: "I1"}
	_, all := h.tenures()
	for i, a := range all {
		for _, b := range all[i:] {
			over := a.unsure != nil && a.unsure.Seq < b.from.Seq && !h.sure(a, b)
			taken := a.taken != nil && a.taken.Seq < b.from.Seq || b.takenBefore()
			if b.tenure == a.tenure || over || taken {
				continue
			}
			until := ", and to the end of the run"
			if a.unsure != nil {
				until = ", until " + a.unsure.At.String() + " (" + string(a.unsure.Kind) + ")"
			}
			out.add(b.from.At, "%s %s (token %d) while %s (token %d) still led%s", b.who, b.from.Kind, b.token, a.who, a.token, until)
		}
	}
	return out.all
}

// sure reports whether a was sampled at b's win, between the moment at which b found that it leads
// and the moment at which it reported that, and was sure. Then the two led at one time, though a
// may have reported its end at the same instant and before b's report.
//
// The sample is also why nothing needs to be excused at one instant: a holder that gives up its
// lease, and the successor that is notified, may do so at one instant if there are no network
// delays, and the scheduler decides in which order their goroutines report. But a holder that is
// sampled and is not sure reports that before the win.
func (h *History) sure(a, b *spell) bool {
	for i := b.from.Seq - 2; i >= 0 && h.Events[i].At == b.from.At; i-- {
		if e := h.Events[i]; e.Kind == Sure && e.claim() == a.claim && e.By == b.who {
			last := a.spells[0]
			for _, s := range a.spells {
				if s.from.Seq <= e.Seq {
					last = s
				}
			}
			return last == a
		}
	}
	return false
}

// Tokens checks that tokens rise in the order of wins, and that no tenure is resumed whose token is
// older than that of a win. A win may be reported late, after a newer one, if the winner was
// delayed: it was stopped during its campaign, or while it was suspended, or its key was removed by
// hand before. Every other winner reports within its lease, and no newer candidate wins before that
// is over.
func Tokens(h *History) []Violation {
	out := found{invariant: "tokens"}
	var newest *spell
	stops := h.stops()
	_, all := h.tenures()
	for _, s := range all {
		since := s.joined
		for _, before := range s.spells {
			if before.suspended != nil && before.suspended.Seq < s.from.Seq {
				since = before.suspended.At
			}
		}
		late := slices.ContainsFunc(stops[s.who], func(stop span) bool { return stop.from <= s.from.At && since <= stop.till })
		switch {
		case newest == nil || s.token > newest.token || s.tenure == newest.tenure:
			newest = s
		case !late && !s.takenBefore():
			out.add(s.from.At, "%s %s with token %d after %s had won with token %d", s.who, s.from.Kind, s.token, newest.who, newest.token)
		}
	}
	return out.all
}

// I4 checks that at the revision of the winning proof the winner's key existed and was the oldest.
// If an implementation does not report the revision of its proof, there must be at least one
// revision between its campaign's start and its win at which that was so; if those revisions are
// unknown, at least one at all. The same is required of a tenure that is resumed after it was
// suspended, from the suspension on. [Tokens] checks that tenures start in create-revision order.
func I4(h *History) []Violation {
	out := found{invariant: "I4"}
	q := h.queue()
	since := map[string]int64{}   // revision at the start of the campaign, or of the suspension
	proofs := map[int64][]int64{} // by token
	for _, e := range h.Events {
		if e.Kind == Proven && e.Proof != 0 {
			proofs[e.Token] = append(proofs[e.Token], e.Proof)
		}
	}
	for _, e := range h.Events {
		if e.Kind == Joined || e.Kind == Suspended {
			since[e.Who] = e.Rev
		}
		if e.Kind != Won && e.Kind != Resumed {
			continue
		}
		l, until := q.byToken(e.Token), cmp.Or(e.Rev, math.MaxInt64)
		wrong := slices.IndexFunc(proofs[e.Token], func(rev int64) bool { return q.leader(rev) != e.Token })
		proven := len(proofs[e.Token]) > 0 && e.Kind == Won
		switch {
		case l == nil:
			out.add(e.At, "%s %s with token %d, which no key ever had", e.Who, e.Kind, e.Token)
		case wrong >= 0:
			out.add(e.At, "%s %s with token %d, but was not alive and oldest at its proof, revision %d", e.Who, e.Kind, e.Token, proofs[e.Token][wrong])
		case !proven && !q.leadsWithin(e.Token, since[e.Who], until):
			out.add(e.At, "%s %s with token %d, but its key was not the oldest at any revision of [%d, %d]", e.Who, e.Kind, e.Token, since[e.Who], until)
		}
	}
	return out.all
}

// Leading checks the samples of processes against one clock. A sample means that at some instant
// from its first reading to its second the participant was sure to lead, so only a win reported
// before the first is certain to be earlier. Then:
//
//   - No participant is sure to lead after a win by a newer token. If its key or lease was removed by
//     hand, its notification may be pending until all has healed.
//   - No participant is sure to lead after the store reported that its key is deleted, with the same
//     exception. This needs no successor.
//   - A participant that was stopped for longer than its lease could last is not sure to lead by it
//     at its first use after that, or ever.
//   - One that has heartbeats and was stopped for longer than their timeout is not sure either,
//     before it has reported that it leads again.
//   - One that has once not been sure, or reported the end, is not sure again, before it has reported
//     that it leads again. That report is judged like a sample that began when it was suspended.
//
// A stop is no excuse: what counts is the instant at which the participant checked, and a stopped
// process does not check.
//
// Each tenure is reported once for each of these.
func Leading(h *History) []Violation {
	out := found{invariant: "leading"}
	all, _ := h.tenures()
	tenures := map[claim]*tenure{}
	for _, t := range all {
		tenures[t.claim] = t
	}
	gone := map[int64]time.Duration{} // by token: when the key's deletion was reported
	for _, l := range h.queue() {
		if l.removed {
			gone[l.create] = l.died
		}
	}
	over := map[claim][]span{} // when a participant was certainly not sure at some instant
	for _, e := range h.Events {
		if e.Kind == NotSure || e.Kind == Ended || e.Kind == Suspended {
			over[e.claim()] = append(over[e.claim()], span{e.At, max(e.At, e.Until)})
		}
	}
	stops, suspended := h.stops(), map[claim]time.Duration{}
	reported := map[claim]map[string]bool{}
	for _, e := range h.Events {
		c := e.claim()
		switch e.Kind {
		case Suspended:
			suspended[c] = e.At
			continue
		case Resumed:
			e.At, e.Until = suspended[c], e.At
		case Sure:
		default:
			continue
		}
		report := func(what, format string, args ...any) {
			if reported[c] == nil {
				reported[c] = map[string]bool{}
			}
			if !reported[c][what] {
				reported[c][what] = true
				out.add(e.At, format, args...)
			}
		}
		t := tenures[c]
		if t == nil {
			report("never won", "%s is sure to lead by token %d, but never reported that it won", e.Who, e.Token)
			continue
		}
		newer := time.Duration(math.MaxInt64) // when the first win by a newer token was reported
		for _, other := range all {
			if other.token > t.token {
				newer = min(newer, other.won.At)
			}
		}
		if newer < e.At && !h.underway(t, newer, e.At) {
			report("two", "%s (token %d) is sure to lead, but a newer token had won by %v, %v before", e.Who, e.Token, newer, e.At-newer)
		}
		if at, ok := gone[e.Token]; ok && at < e.At && !h.underway(t, at, e.At) {
			report("gone", "%s (token %d) is sure to lead, but its key was deleted by %v, %v before", e.Who, e.Token, at, e.At-at)
		}
		since := t.at(max(e.At, e.Until)).from.At // when it began to lead, as far as this sample shows
		for _, s := range stops[e.Who] {
			if t.beat > 0 && since <= s.from && s.till <= e.At && s.till-s.from > t.beat+settling {
				report("beat", "%s (token %d) is sure to lead after it was stopped from %v to %v, longer than its heartbeats' timeout of %v", e.Who, e.Token, s.from, s.till, t.beat)
			}
			if s.till <= e.At && s.outlives(t, h.TTL) {
				report("stop", "%s (token %d) is sure to lead after it was stopped from %v to %v, longer than its lease of %v", e.Who, e.Token, s.from, s.till, h.TTL)
			}
		}
		for _, o := range over[c] {
			if o.till < e.At && (since == t.won.At || o.from > since) {
				report("again", "%s (token %d) is sure to lead, and was not by %v", e.Who, e.Token, o.till)
			}
		}
	}
	return out.all
}

// underway reports whether a tenure's key or lease was removed by hand before the consequence was
// reported, and its holder may not have been notified by an instant. Once nothing is wrong any
// more, a notification takes no longer than the time to recover.
func (h *History) underway(t *tenure, reported, at time.Duration) bool {
	for _, e := range h.Events {
		if e.Kind != Removed || !e.takes(t) || e.At > reported {
			continue
		}
		known := cmp.Or(e.Until, math.MaxInt64)
		for _, healed := range h.Events {
			if healed.Kind == Healed && healed.At >= e.At {
				known = min(known, healed.At+h.recovery())
			}
		}
		if at < known {
			return true
		}
	}
	return false
}
