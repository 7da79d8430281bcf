//go:build unix

package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is the processor time that this process has used so far, 0 where it is unknown.
func processorTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
