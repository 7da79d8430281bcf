package sim

import (
	"sync"
	"time"
)

// clock is the clock of one process: it runs at a rate of its own, and stands still
// while the process is stopped. A real clock goes on then, but nobody looks at it: what
// a process sees is a jump when it goes on. Timers cannot be stopped in a bubble; those
// that fire meanwhile find that by the clock it is too early.
type clock struct {
	start time.Time
	rate  float64

	mu    sync.Mutex
	read  bool // by whoever stands by it
	still bool
	at    time.Duration // the reading while it stands still
}

func newClock(rate float64) *clock {
	if rate == 0 {
		rate = 1
	}
	return &clock{start: time.Now(), rate: rate}
}

// Now implements lease.Clock.
func (c *clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = true
	if c.still {
		return c.at
	}
	return c.reading()
}

// ran is how fast it has run so far, as whoever read it has seen: 1 where nobody has.
func (c *clock) ran() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := time.Since(c.start)
	if !c.read || c.still || passed <= 0 {
		return 1
	}
	return float64(c.reading()) / float64(passed)
}

func (c *clock) reading() time.Duration {
	return time.Duration(float64(time.Since(c.start)) * c.rate)
}

// stop makes the clock stand still.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.still {
		c.still, c.at = true, c.reading()
	}
}

// jump makes it go on as if it had never stood still.
func (c *clock) jump() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.still = false
}
