package clock

import (
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest/lease"
)

// Hand is a clock that a test turns by hand. The zero value is ready, and safe for
// concurrent use.
type Hand struct{ now atomic.Int64 }

// Now implements lease.Clock.
func (h *Hand) Now() time.Duration { return time.Duration(h.now.Load()) }

// Turn moves the clock forward. Timers use real time and do not fire: the next call that reads the
// session's clock (Err, Status, Holds, Leadership.Err, a guarded operation) sees the new time, and
// ends the contexts. A negative d panics: a clock never runs backwards.
func (h *Hand) Turn(d time.Duration) {
	if d < 0 {
		panic("clock: turned backwards")
	}
	h.now.Add(int64(d))
}

// Fast is a clock that is faster than another one by By thousandths.
type Fast struct {
	Clock lease.Clock
	By    int
}

// Now implements lease.Clock.
func (f Fast) Now() time.Duration {
	now := f.Clock.Now()
	return now + now/1000*time.Duration(f.By)
}
