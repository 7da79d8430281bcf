//go:build unix

package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what this process has used so far.
func processorTime() (time.Duration, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0, err
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
