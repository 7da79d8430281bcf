package offspring

import "syscall"

// detached returns the attributes of a process in a process group of its own (Ctrl-C goes to
// all processes of the terminal's group), which the kernel kills when its parent dies.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
