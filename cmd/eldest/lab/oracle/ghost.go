package oracle

import (
	"math"
	"time"
)

// fading is how long a key may outlive its owner's candidacy where nothing is
// wrong: a request that was under way, and the one that removes what it did.
const fading = time.Second

// idle is a time in which somebody with a session did not stand.
type idle struct {
	who        string
	from, till time.Duration
}

// ghosts finds keys that lived on while their owner, with nothing wrong, did not
// stand. Those behind them wait for nobody.
func ghosts(h *History) []Violation {
	var out []Violation
	times := h.idles()
	for _, l := range h.queue().lives {
		died := l.died
		if !l.removed {
			died = end(h)
		}
		for _, i := range times[l.lease] {
			from, till := max(i.from, l.born), min(i.till, died)
			if till-from > fading && !troubled(h, i.who, from, till) {
				out = append(out, violated("I5", from+fading, "key %s (create %d) lived on until %v, and %s did not stand from %v on: a ghost", l.key, l.create, till, i.who, i.from))
			}
		}
	}
	return out
}

// idles returns, by lease, when its owner did not stand, from the end of its
// first candidacy on. A crash ends everything: the lease takes the key with it.
func (h *History) idles() map[int64][]idle {
	out := map[int64][]idle{}
	lease := map[string]int64{}
	since := map[string]time.Duration{}
	stop := func(who string, at time.Duration) {
		if from, ok := since[who]; ok {
			out[lease[who]] = append(out[lease[who]], idle{who, from, at})
			delete(since, who)
		}
	}
	for _, e := range h.Events {
		switch e.Kind {
		case Joined:
			stop(e.Who, e.At)
			lease[e.Who] = e.Lease
		case Crashed:
			stop(e.Who, e.At)
		case Failed, Ended:
			if !e.Lost { // a lost session may not reach the server: the lease ends the key
				since[e.Who] = e.At
			}
		}
	}
	for who := range since {
		stop(who, math.MaxInt64)
	}
	return out
}
