package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

type bootClock struct{}

func (bootClock) Now() time.Duration {
	var ts unix.Timespec
	// The call fails only for an unknown clock or a bad pointer; boot has checked that the clock is
	// known.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return time.Duration(ts.Nano())
}

func boot() Clock {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return Monotonic()
	}
	return bootClock{}
}
