//go:build !unix

package docs

import (
	"errors"
	"syscall"
)

// There are no process groups here: processes that a block leaves are not killed.
func groupAttr() *syscall.SysProcAttr { return nil }

func killGroup(int) error { return errors.ErrUnsupported }
