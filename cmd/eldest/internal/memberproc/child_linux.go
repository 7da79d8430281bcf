package memberproc

import "syscall"

// childAttr makes the kernel kill the child when this process dies: etcd does not end with its
// stdin, and a process that is stopped could not notice that.
func childAttr() (*syscall.SysProcAttr, error) {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, nil
}
