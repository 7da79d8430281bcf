//go:build !unix

package bench

import "time"

// processorTime is the processor time that this process has used so far, 0 where it is unknown.
func processorTime() time.Duration { return 0 }
