package etcdtest

import "syscall"

// childAttr puts a child into a session of its own, so that Ctrl-C reaches the test only, and makes
// the kernel kill it when the test dies: a member that is stopped cannot see its stdin end.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// watchmanAttr is for the process that must survive this one.
func watchmanAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
