package oracle

import "time"

// Healing checks that all comes right by itself. After the last fault is over
// (Healed), with anybody alive, somebody leads within the time to recover; and when
// all has settled (Queue) the keys are exactly those of the participants that stand.
// What changed within the time to recover before the list may be in it or not.
//
// Where there is one list after the other while faults go on (About.Looks), what is wrong
// with the keys must be wrong in so many lists in a row, and who has been told to leave may
// be in the queue or not. In either case nobody is first for longer than the time to
// recover, in one list after the other, without having won.
//
// A Healed after which something else struck too soon is not judged, and counts for
// nothing: see [Tally].
func Healing(h *History) []Violation {
	var out []Violation
	l := &lookout{h: h}
	for _, e := range h.Events {
		switch e.Kind {
		case Healed:
			due := e.At + h.recovery()
			if h.calm(e.At, due) && h.alive(e.At) && !h.led(e.At, due) {
				out = append(out, violated("healing", due, "nobody leads %v after all had healed", h.recovery()))
			}
		case Queue:
			out = append(out, l.look(e)...)
		}
	}
	return out
}

var (
	// disturbs are the kinds after which the time to recover begins anew.
	disturbs = map[Kind]bool{Struck: true, Stopped: true, Removed: true, Crashed: true}
	// leads are the kinds by which somebody is known to lead.
	leads = map[Kind]bool{Won: true, Resumed: true, Sure: true, Held: true, Acked: true}
)

// calm reports whether nothing struck from one instant to another, and the log goes
// on until then.
func (h *History) calm(from, till time.Duration) bool {
	if end(h) < till {
		return false
	}
	for _, e := range h.Events {
		if disturbs[e.Kind] && e.At > from && e.At <= till {
			return false
		}
	}
	return true
}

// alive reports whether somebody takes part at an instant: it stood before, and has
// neither gone nor been told to leave since.
func (h *History) alive(at time.Duration) bool {
	in := map[string]bool{}
	for _, e := range h.Events {
		switch {
		case e.At > at:
		case e.Kind == Joined:
			in[e.Who] = true
		case e.Kind == Leaving, e.Kind == Crashed:
			delete(in, e.Who)
		}
	}
	return len(in) > 0
}

// led reports whether anybody is known to have led at some instant between two: won,
// was sure, or wrote in a tenure of which it has not told the end. (The answer to a write may
// come when its tenure is long over.)
func (h *History) led(from, till time.Duration) bool {
	over := map[claim]bool{}
	for _, e := range h.Events {
		switch {
		case e.At > till:
			return false
		case e.Kind == Ended || e.Kind == Suspended:
			over[claim{e.Who, e.Token}] = true
		case e.Kind == Resumed && e.At < from:
			delete(over, claim{e.Who, e.Token})
		case e.Kind == Resumed:
			return true
		case leads[e.Kind] && e.At >= from && !over[claim{e.Who, e.Token}]:
			return true
		}
	}
	return false
}

// stand is the standing of a participant at the moment of a list.
type stand struct {
	lease int64
	token int64         // 0: waits
	stood bool          // waits or leads; else it is over
	led   bool          // has won
	since time.Duration // when it last changed
	// leaving and left are of one list after the other: it has been told to leave; its lease
	// is left to expire.
	leaving, left bool
}

// lookout is what the lists have shown so far.
type lookout struct {
	h     *History
	odd   map[string]int // what was wrong in the last list, in how many in a row
	first string         // the key that was first then
	since time.Duration  // since when it has been
}

// look judges one list of keys.
func (l *lookout) look(q Event) []Violation {
	var out []Violation
	bad := func(format string, args ...any) { out = append(out, violated("healing", q.At, format, args...)) }
	odd := map[string]int{}
	// again is bad, if it has been so in enough lists.
	again := func(what, key, format string, args ...any) {
		n := l.odd[what+key] + 1
		if odd[what+key] = n; l.h.Looks == 0 || n == l.h.Looks {
			bad(format, args...)
		}
	}
	stands, owner := l.h.standsAt(q.Until)
	recent := func(s stand) bool {
		tolerance := l.h.recovery()
		if l.h.Looks > 0 && !s.left {
			tolerance = 0
		}
		return s.since > q.At-tolerance
	}
	listed := map[string]bool{}
	for i, key := range q.Keys {
		who, ok := owner[LeaseOf(key)]
		s := stands[who]
		stood := s.stood && s.lease == LeaseOf(key)
		switch {
		case !ok:
			again("ghost", key, "key %s is in the queue and nobody's: a ghost", key)
			continue
		case s.left && !recent(s):
			bad("key %s is in the queue, and %s left it there at %v: a ghost", key, who, s.since)
		case !stood && !recent(s) && !s.leaving:
			again("ghost", key, "key %s is in the queue, and %s has not stood by it since %v: a ghost", key, who, s.since)
		case i > 0 && s.stood && s.token != 0 && !recent(s):
			again("place", key, "%s leads (token %d) and its key is number %d in the queue", who, s.token, i+1)
		}
		if s.lease == LeaseOf(key) {
			listed[who] = true
		}
	}
	for who, s := range stands {
		if s.stood && !recent(s) && !listed[who] && !s.leaving {
			again("missing", who, "%s has stood since %v, and its key is not in the queue, of %d", who, s.since, len(q.Keys))
		}
	}
	l.odd = odd
	if len(q.Keys) == 0 || q.Keys[0] != l.first {
		l.first, l.since = "", q.At
		if len(q.Keys) > 0 {
			l.first = q.Keys[0]
		}
		return out
	}
	s := stands[owner[LeaseOf(l.first)]]
	first := q.At - max(l.since, s.since) // whoever has joined since then is first in another life
	if (!s.led || s.lease != LeaseOf(l.first)) && first > l.h.recovery() {
		bad("key %s has been first for %v, and does not lead", l.first, first)
		l.since = q.At
	}
	return out
}

// standsAt returns what each participant said of itself last, and whose which lease
// is.
func (h *History) standsAt(at time.Duration) (stands map[string]stand, owner map[int64]string) {
	stands, owner = map[string]stand{}, map[int64]string{}
	for _, e := range h.Events {
		if e.At > at {
			break
		}
		s := stands[e.Who]
		switch e.Kind {
		case Joined:
			if e.Lease != 0 { // that of a key which names none
				owner[e.Lease] = e.Who
			}
			s = stand{lease: e.Lease, stood: true, since: e.At}
		case Won, Resumed:
			s.token, s.led, s.since = e.Token, true, e.At
		case Suspended:
			s.token, s.led, s.since = 0, false, e.At
		case Leaving:
			s.leaving = h.Looks > 0
		case Failed, Ended, Crashed:
			s.token, s.stood, s.since = 0, false, e.At
		case Exited:
			s.token, s.stood, s.since, s.leaving, s.left = 0, false, e.At, false, e.Lost
		default:
			continue
		}
		stands[e.Who] = s
	}
	return stands, owner
}
