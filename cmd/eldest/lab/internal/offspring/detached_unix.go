//go:build unix && !linux

package offspring

import "syscall"

// detached: see detached_linux.go. There is no such signal here.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
