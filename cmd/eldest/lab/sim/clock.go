package sim

import (
	"sync"
	"time"
)

// clock is the clock of one process: it runs at its own rate, and stops while the process is
// stopped. A real clock continues then, but the process does not read it: its next reading has
// jumped. Timers cannot be stopped in a bubble; when they fire during a stop, the clock shows that
// it is too early.
type clock struct {
	start time.Time
	rate  float64

	mu    sync.Mutex
	read  bool // Now was called
	still bool
	at    time.Duration // the reading while it is stopped
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

// ran returns its rate so far, as its readers have seen it; 1 if it was never read.
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

// stop stops the clock.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.still {
		c.still, c.at = true, c.reading()
	}
}

// jump makes it continue as if it had never been stopped.
func (c *clock) jump() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.still = false
}
