//go:build !unix

package offspring

import "syscall"

// detached does nothing here.
func detached() *syscall.SysProcAttr { return nil }
