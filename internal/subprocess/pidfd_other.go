//go:build !linux

package subprocess

import (
	"errors"
	"fmt"
	"time"
)

// Open is not supported here.
func Open(int) (int, error) { return -1, fmt.Errorf("%w: no pidfd", errors.ErrUnsupported) }

// Parent is not supported here.
func Parent(pid int) (int, error) { return Open(pid) }

// Dead returns false: without a pidfd the death of a process cannot be detected.
func Dead(int, time.Duration) bool { return false }
