//go:build unix

package docs

import "syscall"

// groupAttr starts a process as the leader of a process group.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the remaining processes of a group.
func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }
