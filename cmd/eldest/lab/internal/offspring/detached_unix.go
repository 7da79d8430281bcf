//go:build unix && !linux

package offspring

import "syscall"

// detached: see detached_linux.go. Other systems have no such signal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
