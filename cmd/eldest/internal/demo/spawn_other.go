//go:build !linux

package demo

import "syscall"

// detached does nothing here: when the demo is killed its candidates lose their
// etcd and end within a TTL or so.
func detached() *syscall.SysProcAttr { return nil }
