package actor

import (
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/instant"
)

// clock is a lease.Clock: that of the run, but for the rate at which it runs from some instant on.
type clock struct {
	real instant.Clock

	mu           sync.Mutex
	rate         float64
	since, shown time.Duration // what the real one and this one showed when the rate was set
	read         bool          // since then, by whoever stands by it
}

func newClock(machine instant.Clock) *clock {
	now := machine.Now()
	return &clock{real: machine, rate: 1, since: now, shown: now}
}

// Now implements lease.Clock: it never runs backwards.
func (c *clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = true
	return c.at(c.real.Now())
}

func (c *clock) at(machine time.Duration) time.Duration {
	return c.shown + time.Duration(float64(machine-c.since)*c.rate)
}

// run sets the rate. It reports how fast the clock ran since the last time, or 0 where
// nobody has read it since: a rate that nobody has seen has done nothing.
func (c *clock) run(rate float64) (ran float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.real.Now()
	shows := c.at(now)
	if passed := now - c.since; passed > 0 && c.read {
		ran = float64(shows-c.shown) / float64(passed)
	}
	c.since, c.shown, c.rate, c.read = now, shows, rate, false
	return ran
}
