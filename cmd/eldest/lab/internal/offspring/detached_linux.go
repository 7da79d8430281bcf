package offspring

import "syscall"

// detached: a process group of its own, because Ctrl-C goes to all processes of
// the terminal's group and the demo wants to end them itself.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
