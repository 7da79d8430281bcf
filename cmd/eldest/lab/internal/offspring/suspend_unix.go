//go:build unix

package offspring

import (
	"syscall"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Suspends says that processes can be suspended here.
const Suspends = true

// Suspend stops the process where it is, and returns when the kernel says that it stands
// still: it does nothing until Resume, and does not know of it. End works on a suspended one.
func (p *Process) Suspend() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return etcdtest.AwaitStopped(p.Pid())
}

// Resume lets a suspended process go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }
