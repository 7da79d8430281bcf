package etcdtest

import (
	"sync/atomic"
	"time"
)

// Clock runs with real time and jumps when Jump is called, as the clock of a machine that was
// suspended or of a process that was stopped; no timer fires at a jump. It is a lease.Clock.
type Clock struct {
	begin time.Time
	ahead atomic.Int64
}

// NewClock returns a clock that begins at zero.
func NewClock() *Clock { return &Clock{begin: time.Now()} }

// Now is the time since the beginning plus all jumps.
func (c *Clock) Now() time.Duration { return time.Since(c.begin) + time.Duration(c.ahead.Load()) }

// Jump puts the clock forward.
func (c *Clock) Jump(d time.Duration) { c.ahead.Add(int64(d)) }
