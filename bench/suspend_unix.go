//go:build unix

package bench

import (
	"os"
	"syscall"
)

// suspend stops a process, or continues it.
func suspend(p *os.Process, stop bool) error {
	if stop {
		return p.Signal(syscall.SIGSTOP)
	}
	return p.Signal(syscall.SIGCONT)
}
