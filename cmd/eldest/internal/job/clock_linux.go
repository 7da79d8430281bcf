package job

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now reads the clock of all deadlines: the same one in all processes of the machine.
func Now() time.Duration { return read(unix.CLOCK_BOOTTIME) }

// alarm is a descriptor that is readable once Now has reached a reading. It wakes the
// keeper after a suspend as well, unlike a limit on the time that poll waits.
type alarm struct{ fd int }

func newAlarm() (alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	return alarm{fd}, err
}

// set sets the reading; 0 is never. It returns how long poll may wait.
func (a alarm) set(at time.Duration) (limit int) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}
	if unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil) != nil {
		return untilThen(at) // cannot be, for a clock that could be created
	}
	return -1
}
