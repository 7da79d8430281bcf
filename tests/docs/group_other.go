//go:build !unix

package docs

import (
	"errors"
	"syscall"
)

// There are no process groups here: what a block leaves is left.
func groupAttr() *syscall.SysProcAttr { return nil }

func killGroup(int) error { return errors.ErrUnsupported }
