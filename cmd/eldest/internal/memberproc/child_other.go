//go:build !linux

package memberproc

import (
	"errors"
	"syscall"
)

// childAttr refuses: on these systems an etcd that was started here would outlive a member that is
// killed.
func childAttr() (*syscall.SysProcAttr, error) {
	return nil, errors.New("another etcd than the built-in one can only be run on Linux")
}
