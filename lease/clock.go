package lease

import "time"

// Clock is where a session reads the time. Only differences of readings matter.
// Implementations must be safe for concurrent use and must never run backwards.
//
// A clock that stops while the machine sleeps breaks G3: the session would
// outlive its lease by the length of the sleep.
type Clock interface {
	// Now returns the time since some fixed instant.
	Now() time.Duration
}

// Boot returns the default clock: one that goes on while the system is
// suspended, where the platform has it (CLOCK_BOOTTIME on Linux), else
// Monotonic.
func Boot() Clock { return boot() }

// Monotonic returns Go's monotonic clock. It stops in suspend on Linux; use it
// where time is virtual (testing/synctest), which CLOCK_BOOTTIME knows nothing of.
func Monotonic() Clock { return monotonic{start: time.Now()} }

type monotonic struct{ start time.Time }

func (c monotonic) Now() time.Duration { return time.Since(c.start) }
