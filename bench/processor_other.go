//go:build !unix

package bench

import (
	"errors"
	"time"
)

// processorTime is what this process has used so far.
func processorTime() (time.Duration, error) { return 0, errors.ErrUnsupported }
