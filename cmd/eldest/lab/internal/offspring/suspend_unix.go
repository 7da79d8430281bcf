//go:build unix

package offspring

import "syscall"

// Suspends says that processes can be suspended here.
const Suspends = true

// Suspend stops the process where it is: it does nothing until Resume, and does not know
// of it. End works on a suspended one.
func (p *Process) Suspend() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a suspended process go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }
