package instant

import (
	"time"

	"github.com/eldest-io/eldest/lease"
)

// Clock shows how long ago a series began. It is a plain value; all methods are safe for
// concurrent use.
type Clock struct {
	// Zero is what the machine's clock showed when the series began.
	Zero time.Duration `json:"zero"`
}

// Begin returns a clock that shows zero now. The first instants are a moment after it:
// none is zero.
func Begin() Clock { return Clock{Zero: lease.Boot().Now() - time.Nanosecond} }

// Now reads it.
func (c Clock) Now() time.Duration { return lease.Boot().Now() - c.Zero }
