//go:build unix

package etcdtest

import (
	"os"
	"syscall"
)

// lockFile takes an exclusive lock that all processes of this machine respect and that is released
// when this process ends. It blocks until it has the lock.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close() // the lock is what matters
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
	return func() { _ = f.Close() }, nil // closing releases the lock
}
