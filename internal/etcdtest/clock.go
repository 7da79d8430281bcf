package etcdtest

import (
	"sync/atomic"
	"time"
)

// Clock goes with the others, and jumps when it is told to: as of a machine that was suspended,
// or a process that was stopped, with no timer having fired. It is a lease.Clock.
type Clock struct {
	begin time.Time
	ahead atomic.Int64
}

// NewClock begins at zero.
func NewClock() *Clock { return &Clock{begin: time.Now()} }

// Now is the time since the beginning, and all jumps.
func (c *Clock) Now() time.Duration { return time.Since(c.begin) + time.Duration(c.ahead.Load()) }

// Jump puts the clock forward.
func (c *Clock) Jump(d time.Duration) { c.ahead.Add(int64(d)) }
