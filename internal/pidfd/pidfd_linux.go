package pidfd

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Parent returns the pidfd of the process that started this one, which must have this ID still:
// if it has died, the ID may be another's by now.
func Parent(pid int) (int, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, fmt.Errorf("pidfd_open of process %d: %w", pid, err)
	}
	// Only now: while it is the parent, the ID cannot be another's, so the pidfd is not either.
	if os.Getppid() != pid {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("process %d is not the parent, or has died", pid)
	}
	return fd, nil
}

// Dead blocks until the process is dead, and returns true, or until some time has passed.
func Dead(fd int, within time.Duration) bool {
	for until := time.Now().Add(within); ; {
		left := max(0, time.Until(until))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}
