//go:build unix && !linux

package job

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now reads the clock of all deadlines: the same one in all processes of the machine.
func Now() time.Duration { return read(unix.CLOCK_MONOTONIC) }

// alarm is nothing here: poll waits as long as it must, by the clock that it has.
type alarm struct{ fd int }

func newAlarm() (alarm, error) { return alarm{-1}, nil }

// set returns how long poll may wait.
func (a alarm) set(at time.Duration) (limit int) { return untilThen(at) }
