//go:build !unix

package demo

import "syscall"

// detached does nothing here.
func detached() *syscall.SysProcAttr { return nil }
