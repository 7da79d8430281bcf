package participant

import (
	"sync"
	"time"

	"github.com/eldest-io/eldest/lease"
)

// clock is a lease.Clock: the machine's, but for the rate at which it runs from some instant on.
type clock struct {
	mu           sync.Mutex
	rate         float64
	since, shown time.Duration // what the machine's and this one showed when the rate was set
	read         bool          // since then, by the election
}

func newClock() *clock {
	now := lease.Boot().Now()
	return &clock{rate: 1, since: now, shown: now}
}

// Now implements lease.Clock: it never runs backwards.
func (c *clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = true
	return c.at(lease.Boot().Now())
}

func (c *clock) at(machine time.Duration) time.Duration {
	return c.shown + time.Duration(float64(machine-c.since)*c.rate)
}

// run sets the rate.
func (c *clock) run(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := lease.Boot().Now()
	c.since, c.shown, c.rate, c.read = now, c.at(now), rate, false
}

// ran is how fast the clock has run since the rate was set, or 0 where nobody has read it since: a
// rate that nobody has seen has done nothing.
func (c *clock) ran() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := lease.Boot().Now()
	if now <= c.since || !c.read {
		return 0
	}
	return float64(c.at(now)-c.shown) / float64(now-c.since)
}
