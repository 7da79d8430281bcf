//go:build !unix

package bench

import "time"

// processorTime is what this process has used so far, 0 where that is not known.
func processorTime() time.Duration { return 0 }
