package offspring

import "syscall"

// detached returns the attributes of a process in its own process group (Ctrl-C goes to all
// processes of the terminal's group), which the kernel kills when its parent ends.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
