//go:build !linux

package peers

import (
	"errors"
	"fmt"
)

// filter is supported on Linux only.
func filter(int, bool) error {
	return fmt.Errorf("cutting a network: %w: it needs Linux's socket filters", errors.ErrUnsupported)
}
