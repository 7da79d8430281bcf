package job

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// prefix is what the names of control groups begin with; the rest is a number.
const prefix = "eldest-run-"

// hold marks a control group as one in use, for as long as the descriptor of its directory
// is open: a lock goes with the processes that have it, however they end.
func hold(dir int) error {
	return os.NewSyscallError("flock", unix.Flock(dir, unix.LOCK_SH|unix.LOCK_NB))
}

// removeLeftovers removes the control groups of owners and keepers that were killed together:
// those below parent that nobody holds, and in which no process is.
func removeLeftovers(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, entry := range entries {
		number, ours := strings.CutPrefix(entry.Name(), prefix)
		if ours && entry.IsDir() && number != "" && strings.Trim(number, "0123456789") == "" {
			removeLeftover(filepath.Join(parent, entry.Name()))
		}
	}
}

func removeLeftover(path string) {
	dir, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(dir) }()
	if unix.Flock(dir, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return // it is in use: its program may not have been started yet
	}
	events, _ := os.ReadFile(filepath.Join(path, "cgroup.events"))
	if bytes.Contains(events, []byte("populated 0")) {
		rmdir(path)
	}
}
