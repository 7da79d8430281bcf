package oracle

import (
	"cmp"
	"math"
	"time"
)

// claim identifies a tenure by its participant and its token.
type claim struct {
	who   string
	token int64
}

func (e Event) claim() claim { return claim{e.Who, e.Token} }

// tenure is one win and the later reports of it.
type tenure struct {
	claim
	won Event
	// joined is when its campaign began; by then it had its lease. beat is its heartbeats'
	// timeout.
	joined, beat time.Duration
	spells       []*spell // at least one, in the order of the log
	ended        []Event  // should be one
	crashed      *Event   // before it reported the end
	taken        *Event   // removal by hand of its key or lease
}

// spell is a time in which a tenure leads: from its win, or from when it was resumed after a suspension.
type spell struct {
	*tenure
	from Event
	// unsure is the first instant at which the holder was not sure to lead any more, resigned, or
	// crashed. nil: sure to the end of the log. A holder that was stopped, and is not sure at its
	// first report after that, ended with the stop: in between it did nothing. One that reports
	// that it is still sure never ended.
	unsure    *Event
	suspended *Event // the report of its suspension
}

// takenBefore reports whether the leader's key or lease was removed by hand before this was
// reported: then it was true at the revision of its proof, and no longer when it was reported.
func (s *spell) takenBefore() bool { return s.taken != nil && s.taken.Seq < s.from.Seq }

// at returns the spell at an instant, or the last one before it; if there is none, the first one.
func (t *tenure) at(when time.Duration) *spell {
	last := t.spells[0]
	for _, s := range t.spells {
		if s.from.At <= when {
			last = s
		}
	}
	return last
}

// tenures returns all wins in the order of the log, and all spells.
func (h *History) tenures() (all []*tenure, spells []*spell) {
	of, last := map[claim]*tenure{}, map[string]*tenure{}
	joined := map[string]*Event{}
	var removals []*Event
	stopped := map[string]*Event{} // by participant, until its first report after that
	goesOn := map[string]bool{}    // those that were stopped, and have continued
	begin := func(t *tenure, e *Event) {
		t.spells = append(t.spells, &spell{tenure: t, from: *e})
		spells = append(spells, t.spells[len(t.spells)-1])
	}
	// over ends the last spell, unless it has ended; if the holder was stopped, with the stop.
	over := func(t *tenure, e *Event) *spell {
		s := t.spells[len(t.spells)-1]
		s.unsure = cmp.Or(s.unsure, stopped[e.Who], e)
		return s
	}
	for i := range h.Events {
		e := &h.Events[i]
		t := of[e.claim()]
		switch e.Kind {
		case Joined:
			joined[e.Who] = e
		case Won:
			t = &tenure{claim: e.claim(), won: *e}
			if j := joined[e.Who]; j != nil {
				t.joined, t.beat = j.At, j.Beat
			}
			begin(t, e)
			for _, r := range removals {
				if r.takes(t) {
					t.taken = r
				}
			}
			all = append(all, t)
			of[t.claim], last[e.Who] = t, t
		case Resumed:
			if t != nil {
				begin(t, e)
			}
		case Stopped:
			stopped[e.Who], goesOn[e.Who] = e, false
		case Continued:
			goesOn[e.Who] = true
		case Sure:
			delete(stopped, e.Who)
		case NotSure, Resigning, Suspended, Ended:
			if t == nil {
				break
			}
			s := over(t, e)
			switch e.Kind {
			case Suspended:
				s.suspended = e
			case Ended:
				t.ended = append(t.ended, *e)
			}
		case Crashed:
			if t := last[e.Who]; t != nil && len(t.ended) == 0 {
				t.crashed = e
				over(t, e)
			}
		case Removed:
			removals = append(removals, e)
			for _, t := range all {
				if t.taken == nil && e.takes(t) {
					t.taken = e
				}
			}
		}
		if (e.Kind == Won || e.Kind == Resumed) && goesOn[e.Who] { // otherwise it is the report of the instant at which it was stopped
			delete(stopped, e.Who)
		}
	}
	return all, spells
}

// takes reports whether a removal by hand is that of a tenure's key, or, if it has a lease and no
// token, of the keys that were put with that lease.
func (e *Event) takes(t *tenure) bool {
	return e.Token == t.token || e.Token == 0 && e.Lease != 0 && e.Lease == LeaseOf(t.won.Key)
}

// span is a time between two instants.
type span struct{ from, till time.Duration }

// stops returns, by participant, when its process certainly did not run. One that does not continue
// is stopped to the end.
func (h *History) stops() map[string][]span {
	out := map[string][]span{}
	since := map[string]time.Duration{}
	for _, e := range h.Events {
		from, stopped := since[e.Who]
		switch {
		case e.Kind == Stopped && !stopped:
			since[e.Who] = e.At
		case stopped && (e.Kind == Continued || e.Kind == Crashed):
			out[e.Who] = append(out[e.Who], span{from, e.At})
			delete(since, e.Who)
		}
	}
	for who, from := range since {
		out[who] = append(out[who], span{from, math.MaxInt64})
	}
	return out
}

// settling is how long a thread may continue after its process was seen to be stopped: one in the
// kernel stops when it leaves the kernel.
const settling = 100 * time.Millisecond

// outlives reports whether the lease of a campaign that began before the stop must have ended in
// it, however much of it was left: it is not renewed meanwhile, and no answer makes a lease last
// for more than a TTL from its request.
func (s span) outlives(t *tenure, ttl time.Duration) bool {
	return t.joined <= s.from && s.till-s.from > ttl+settling
}

// stand is the state of a participant's candidacy after its last report.
type stand struct {
	phase   Kind // Joined, Won or Suspended; else it is no candidate: "", Failed, Ended, Crashed or Exited
	lease   int64
	token   int64 // while it leads
	since   time.Duration
	led     bool // it has won, and was not suspended after that
	leaving bool // it was ordered to leave since it joined
	left    bool // it has exited, and its lease must expire
}

func (s stand) candidate() bool { return s.phase == Joined || s.phase == Won || s.phase == Suspended }

// stands are the stands of all participants up to an entry of the log.
type stands map[string]stand

func (all stands) add(e Event) {
	s := all[e.Who]
	switch e.Kind {
	case Joined:
		s = stand{lease: e.Lease}
	case Leaving:
		s.leaving = true
		all[e.Who] = s
		return
	case Exited:
		s.leaving, s.left, s.token = false, e.Lost, 0
	case Failed, Ended, Crashed, Suspended, Won, Resumed:
		s.token = 0
	default:
		return
	}
	s.phase, s.since, s.led = e.Kind, e.At, s.led && e.Kind != Suspended
	if e.Kind == Won || e.Kind == Resumed {
		s.phase, s.token, s.led = Won, e.Token, true
	}
	all[e.Who] = s
}
