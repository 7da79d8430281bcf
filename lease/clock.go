package lease

import "time"

// Clock is the clock of a session. Only differences of readings are used. Implementations must be
// safe for concurrent use and must never run backwards.
//
// A clock that stops while the machine is suspended breaks G3: the session would outlive its lease
// by the length of the suspend.
type Clock interface {
	// Now returns the time since some fixed instant.
	Now() time.Duration
}

// Boot returns the default clock, which continues while the system is suspended if the platform has
// such a clock (CLOCK_BOOTTIME on Linux); otherwise it returns Monotonic.
func Boot() Clock { return boot() }

// Monotonic returns Go's monotonic clock. On Linux it stops during a suspend. Use it with virtual
// time (testing/synctest), which does not change CLOCK_BOOTTIME.
func Monotonic() Clock { return monotonic{start: time.Now()} }

type monotonic struct{ start time.Time }

func (c monotonic) Now() time.Duration { return time.Since(c.start) }
