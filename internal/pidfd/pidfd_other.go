//go:build !linux

package pidfd

import (
	"errors"
	"fmt"
	"time"
)

// Parent is not supported here.
func Parent(int) (int, error) { return -1, fmt.Errorf("%w: no pidfd", errors.ErrUnsupported) }

// Dead reports false: without a pidfd it cannot be known.
func Dead(int, time.Duration) bool { return false }
