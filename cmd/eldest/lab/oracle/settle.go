package oracle

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// fading is how long a key may outlive its owner's candidacy if nothing is wrong: a request in
// flight, and the one that removes its result.
const fading = time.Second

// I5 checks: at quiescence (the first Quiet event) no candidate waits while no older candidate
// exists. The oldest key belongs to a participant that leads by it, every key belongs to one, and
// each that waits or leads has a key. At all times, no key exists for long whose owner is not a
// candidate (G8).
func I5(h *History) []Violation {
	out := found{"I5", h.orphans()}
	quiet := slices.IndexFunc(h.Events, func(e Event) bool { return e.Kind == Quiet })
	if quiet < 0 {
		return out.all
	}
	at, now, owner := h.Events[quiet], stands{}, map[int64]string{}
	for _, e := range h.Events[:quiet] {
		now.add(e)
	}
	for who, s := range now {
		if s.candidate() {
			owner[s.lease] = who
		}
	}
	has := map[string]bool{}
	first := true
	for _, l := range h.queue() {
		if !l.aliveAt(at.Rev) {
			continue
		}
		who, ok := owner[l.lease]
		token := now[who].token
		switch {
		case !ok:
			out.add(at.At, "key %s (create %d) is orphaned: no candidate owns it", l.key, l.create)
		case first && token == 0:
			out.add(at.At, "%s waits although its key (create %d) is the oldest", who, l.create)
		case !first && token != 0:
			out.add(at.At, "%s leads (token %d) although older keys exist", who, token)
		case first && token != l.create:
			out.add(at.At, "%s leads by token %d, its key has create revision %d", who, token, l.create)
		}
		has[who], first = true, false
	}
	for _, who := range slices.Sorted(maps.Keys(now)) {
		if s := now[who]; s.candidate() && !has[who] && s.token != 0 {
			out.add(at.At, "%s leads (token %d) without a key", who, s.token)
		} else if s.candidate() && !has[who] {
			out.add(at.At, "%s waits without a key: it can never lead", who)
		}
	}
	return out.all
}

// orphans finds orphaned keys: they existed while their owner, with nothing wrong, was no candidate.
// The candidates behind them wait for no leader.
func (h *History) orphans() []Violation {
	out := found{invariant: "I5"}
	type idle struct {
		who string
		span
	}
	idles := map[int64][]idle{} // by lease: when its owner was no candidate, from the end of its first candidacy on
	lease, since := map[string]int64{}, map[string]time.Duration{}
	over := func(who string, at time.Duration) {
		if from, ok := since[who]; ok {
			idles[lease[who]] = append(idles[lease[who]], idle{who, span{from, at}})
			delete(since, who)
		}
	}
	for _, e := range h.Events {
		switch e.Kind {
		case Joined:
			over(e.Who, e.At)
			lease[e.Who] = e.Lease
		case Crashed: // a crash ends everything: the key expires with the lease
			over(e.Who, e.At)
		case Failed, Ended:
			if !e.Lost { // a lost session may not reach the server: the key expires with the lease
				since[e.Who] = e.At
			}
		}
	}
	for _, who := range slices.Sorted(maps.Keys(since)) {
		over(who, math.MaxInt64)
	}
	for _, l := range h.queue() {
		died := l.died
		if !l.removed {
			died = h.end()
		}
		for _, i := range idles[l.lease] {
			from, till := max(i.from, l.born), min(i.till, died)
			if till-from > fading && !h.Troubled(i.who, from, till) {
				out.add(from+fading, "key %s (create %d) existed until %v, and %s was no candidate from %v on: an orphaned key", l.key, l.create, till, i.who, i.from)
			}
		}
	}
	return out.all
}

// Healing checks that everything recovers by itself. After the last fault is over (Healed), if any
// participant is alive, one leads within the time to recover; and when all has settled (Queue) the
// keys are exactly those of the candidates. A candidate that changed within the time to recover
// before the list may be in it or not.
//
// If the queue is listed again and again while faults continue (About.Looks), what is wrong with
// the keys must be wrong in so many lists in a row, and a participant that was ordered to leave may
// be in the queue or not. In either case no candidate is first for longer than the time to recover,
// in one list after the other, without having won.
//
// A Healed after which another fault took effect too soon is not judged, and does not count: see
// [Tally].
func Healing(h *History) []Violation {
	out := found{invariant: "healing"}
	now, owner := stands{}, map[int64]string{} // owner by lease
	odd := map[string]int{}                    // what was wrong in the last list, and in how many lists in a row
	first, since := "", time.Duration(0)
	for _, e := range h.asAnswered() {
		now.add(e)
		switch e.Kind {
		case Joined:
			if e.Lease != 0 { // 0: of a key without a lease in its name
				owner[e.Lease] = e.Who
			}
		case Healed:
			due := e.At + h.recovery()
			if h.recovers(e.At) && !h.led(e.At, due) {
				out.add(due, "no candidate leads %v after the last fault had ended", h.recovery())
			}
		case Queue:
			odd = h.look(e, now, owner, odd, &out)
			if len(e.Keys) == 0 || e.Keys[0] != first {
				first, since = "", e.At
				if len(e.Keys) > 0 {
					first = e.Keys[0]
				}
				break
			}
			s := now[owner[LeaseOf(first)]]
			long := e.At - max(since, s.since) // a candidate that has joined since then has another key
			if (!s.led || s.lease != LeaseOf(first)) && long > h.recovery() {
				out.add(e.At, "key %s has been first for %v, but its owner does not lead", first, long)
				since = e.At
			}
		}
	}
	return out.all
}

// asAnswered returns the events in the order of their instants, and each list of the queue after all
// that happened until it was answered: a participant that changed until then may be in it or not.
func (h *History) asAnswered() []Event {
	after := func(e Event) time.Duration {
		if e.Kind == Queue {
			return e.Until + 1
		}
		return e.At
	}
	all := slices.Clone(h.Events)
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(after(a), after(b)) })
	return all
}

// look judges one list of keys, and returns what is wrong with it.
func (h *History) look(q Event, now stands, owner map[int64]string, before map[string]int, out *found) (odd map[string]int) {
	odd = map[string]int{}
	// again reports what is wrong, if it was wrong in enough lists.
	again := func(what, key, format string, args ...any) {
		n := before[what+key] + 1
		if odd[what+key] = n; h.Looks == 0 || n == h.Looks {
			out.add(q.At, format, args...)
		}
	}
	recent := func(s stand) bool {
		tolerance := h.recovery()
		if h.Looks > 0 && !s.left {
			tolerance = 0
		}
		return s.since > q.At-tolerance
	}
	excused := func(s stand) bool { return s.leaving && h.Looks > 0 }
	listed := map[string]bool{}
	for i, key := range q.Keys {
		who, ok := owner[LeaseOf(key)]
		s := now[who]
		switch {
		case !ok:
			again("orphan", key, "key %s is in the queue, but is orphaned: no candidate owns it", key)
			continue
		case s.left && !recent(s):
			out.add(q.At, "key %s is in the queue, and %s left it there at %v: an orphaned key", key, who, s.since)
		case (!s.candidate() || s.lease != LeaseOf(key)) && !recent(s) && !excused(s):
			again("orphan", key, "key %s is in the queue, and %s has been no candidate with it since %v: an orphaned key", key, who, s.since)
		case i > 0 && s.token != 0 && !recent(s):
			again("place", key, "%s leads (token %d) and its key is number %d in the queue", who, s.token, i+1)
		}
		if s.lease == LeaseOf(key) {
			listed[who] = true
		}
	}
	for _, who := range slices.Sorted(maps.Keys(now)) {
		if s := now[who]; s.candidate() && !recent(s) && !listed[who] && !excused(s) {
			again("missing", who, "%s has been a candidate since %v, but its key is not in the queue (length %d)", who, s.since, len(q.Keys))
		}
	}
	return odd
}

// recovers reports whether the end of all faults must be judged: a participant takes part that was not
// ordered to leave, and no fault took effect before the log had continued for the time to recover.
func (h *History) recovers(from time.Duration) bool {
	till := from + h.recovery()
	disturbed := slices.ContainsFunc(h.Events, func(e Event) bool {
		disturbs := e.Kind == Struck || e.Kind == Stopped || e.Kind == Removed || e.Kind == Crashed
		return disturbs && e.At > from && e.At <= till
	})
	in := map[string]bool{}
	for _, e := range h.Events {
		switch {
		case e.At > from:
		case e.Kind == Joined:
			in[e.Who] = true
		case e.Kind == Leaving, e.Kind == Crashed:
			delete(in, e.Who)
		}
	}
	return len(in) > 0 && !disturbed && h.end() >= till
}

// led reports whether a participant is known to have led at some instant between two: it won, was
// sure, or wrote in a tenure whose end it has not reported. (The answer to a write may come long
// after its tenure.)
func (h *History) led(from, till time.Duration) bool {
	over := map[claim]bool{}
	for _, e := range h.Events {
		switch e.Kind {
		case Ended, Suspended:
			over[e.claim()] = true
		case Resumed:
			delete(over, e.claim())
		}
		leads := e.Kind == Won || e.Kind == Resumed || e.Kind == Sure || e.Kind == Acked
		if leads && !over[e.claim()] && e.At >= from && e.At <= till {
			return true
		}
	}
	return false
}
