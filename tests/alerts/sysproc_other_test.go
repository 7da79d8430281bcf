//go:build !linux

package alerts

import "syscall"

func childAttr() *syscall.SysProcAttr { return nil }
