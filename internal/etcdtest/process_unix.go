//go:build unix && !linux

package etcdtest

import "syscall"

// childAttr puts a child into a session of its own, so that Ctrl-C reaches the test only. On these
// systems only the end of stdin ends the members of a test that died.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// watchmanAttr is for the process that must survive this one.
func watchmanAttr() *syscall.SysProcAttr { return childAttr() }
