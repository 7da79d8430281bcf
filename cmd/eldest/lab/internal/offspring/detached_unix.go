//go:build unix && !linux

package offspring

import "syscall"

// detached: see detached_linux.go. There is no such death signal here; when the demo is
// killed its candidates lose their etcd and end within a TTL or so.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
