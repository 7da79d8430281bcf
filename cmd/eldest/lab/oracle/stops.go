package oracle

import (
	"math"
	"time"
)

// stop is a time in which a participant's process certainly did not run.
type stop struct {
	from, till time.Duration
}

func (s stop) overlaps(from, till time.Duration) bool { return s.from <= till && from <= s.till }

// stops returns, by participant, when it was stopped. One that is not told to go on
// again is stopped for good.
func (h *History) stops() map[string][]stop {
	out := map[string][]stop{}
	since := map[string]time.Duration{}
	for _, e := range h.Events {
		from, stopped := since[e.Who]
		switch {
		case e.Kind == Stopped && !stopped:
			since[e.Who] = e.At
		case e.Kind == Continued && stopped, e.Kind == Crashed && stopped:
			out[e.Who] = append(out[e.Who], stop{from, e.At})
			delete(since, e.Who)
		}
	}
	for who, from := range since {
		out[who] = append(out[who], stop{from, math.MaxInt64})
	}
	return out
}

// wakeup is how soon a process that goes on must have told what it owed meanwhile: it
// needs nobody else for that.
const wakeup = time.Millisecond

// awake returns when somebody who owes a word at an instant can give it: at once,
// or when its stop is over.
func awake(stops []stop, at time.Duration) time.Duration {
	for _, s := range stops {
		if s.from <= at && at <= s.till {
			at = s.till
			if at < math.MaxInt64 {
				at += wakeup
			}
		}
	}
	return at
}

// settling is how long a thread may go on after its process was seen to be
// stopped: one in the kernel stops on its way out of it.
const settling = 100 * time.Millisecond

// outlives reports whether the lease of a campaign that began before the stop must
// have ended in it, however much of it was left: nobody renews who is stopped, and
// no answer makes a lease last for more than a TTL from its question.
func (s stop) outlives(t *tenure, ttl time.Duration) bool {
	return t.joined <= s.from && s.till < math.MaxInt64 && s.till-s.from > ttl+settling
}
