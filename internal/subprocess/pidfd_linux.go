package subprocess

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Open returns a pidfd of a process, whose ID must still belong to it.
func Open(pid int) (int, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, fmt.Errorf("pidfd_open of process %d: %w", pid, err)
	}
	return fd, nil
}

// Parent returns a pidfd of the process that started this one. pid is its process ID. If the parent
// has died, another process may have that ID: then Parent returns an error.
func Parent(pid int) (int, error) {
	fd, err := Open(pid)
	if err != nil {
		return -1, err
	}
	// After Open: while the process is the parent, no other process has its ID, so the pidfd is the
	// parent's.
	if os.Getppid() != pid {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("process %d is not the parent, or has died", pid)
	}
	return fd, nil
}

// Dead blocks until the process is dead, and returns true, or until the time has passed, and
// returns false.
func Dead(fd int, within time.Duration) bool {
	for until := time.Now().Add(within); ; {
		left := max(0, time.Until(until))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}
