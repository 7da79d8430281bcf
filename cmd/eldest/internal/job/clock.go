package job

import (
	"time"

	"golang.org/x/sys/unix"
)

func read(clock int32) time.Duration {
	var ts unix.Timespec
	// It fails for an unknown clock or a bad pointer only.
	_ = unix.ClockGettime(clock, &ts)
	return time.Duration(ts.Nano())
}

// untilThen is the time until a reading in the milliseconds of poll, rounded up; -1 for
// a reading of 0, which never comes.
func untilThen(at time.Duration) int {
	if at == 0 {
		return -1
	}
	left := max(0, at-Now())
	return int((min(left, time.Hour) + time.Millisecond - 1) / time.Millisecond)
}
