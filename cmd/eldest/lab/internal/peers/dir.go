package peers

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// dirPrefix begins the names of the directories of runs.
const dirPrefix = "eldest-peers-"

// newDir makes the directory of a run. The run has a lock on it until it closes lock, or ends in any way:
// a directory whose lock is free belongs to no run any more.
func newDir(base string) (dir string, lock *os.File, err error) {
	for range 10 {
		if dir, err = os.MkdirTemp(base, dirPrefix); err != nil {
			return "", nil, err
		}
		// Another run may take the directory for an abandoned one just before the lock.
		if lock, err = lockDir(dir); err == nil {
			// Servers that run as other users pass through it.
			if err = os.Chmod(dir, 0o711); err == nil {
				return dir, lock, nil
			}
			_ = lock.Close()
		}
		_ = os.RemoveAll(dir)
	}
	return "", nil, err
}

// lockDir locks a directory. It does not wait for a lock that another process has.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(os.NewSyscallError("flock", err), f.Close())
	}
	return f, nil
}

// removeAbandoned removes the directories of runs that were killed, as far as it may.
func removeAbandoned(base string) {
	entries, _ := os.ReadDir(base) // where nothing can be read, nothing is removed
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), dirPrefix) {
			continue
		}
		dir := filepath.Join(base, e.Name())
		if lock, err := lockDir(dir); err == nil {
			_ = removeDir(dir)
			_ = lock.Close()
		}
	}
}

// makeDir makes a directory that other users can read, whatever the process's umask is.
func makeDir(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o755)) }

// removeDir removes a directory. What a dying process still writes may need a second attempt.
func removeDir(dir string) error {
	err := os.RemoveAll(dir)
	for range 10 {
		if err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
		err = os.RemoveAll(dir)
	}
	return err
}
