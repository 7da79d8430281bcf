//go:build unix

package docs

import "syscall"

// groupAttr starts a process as the head of a group.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills what is left of a group.
func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }
