package alerts

import "syscall"

// childAttr makes the kernel kill a child when the test dies.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
