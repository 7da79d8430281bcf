package lease

import (
	"fmt"
	"math"
	"time"

	"github.com/eldest-io/eldest"
)

// Limits of a lease's TTL and margin.
const (
	// DefaultTTL is used when Config.TTL is 0.
	DefaultTTL = 10 * time.Second
	// MaxTTL is the longest TTL that Open requests. A candidate that crashes blocks the queue for
	// its TTL; more than a day is a mistake, probably of units.
	MaxTTL = 24 * time.Hour
	// MinMargin is the smallest default margin. Measured: at a TTL of 2 s it covers a clock rate
	// that differs by a tenth, far more than hardware clocks do.
	MinMargin = 200 * time.Millisecond
)

// seconds converts a wanted TTL to etcd's unit: whole seconds, rounded UP, because rounding down
// would request less time than the caller relies on. 0 is DefaultTTL. Negative TTLs and those over
// MaxTTL are refused.
func seconds(ttl time.Duration) (int64, error) {
	switch {
	case ttl == 0:
		ttl = DefaultTTL
	case ttl < 0:
		return 0, fmt.Errorf("%w: the TTL %v is negative", eldest.ErrInvalid, ttl)
	case ttl > MaxTTL:
		return 0, fmt.Errorf("%w: the TTL %v is over the longest one allowed, %v", eldest.ErrInvalid, ttl, MaxTTL)
	}
	return int64(math.Ceil(ttl.Seconds())), nil
}

// marginOf returns the margin for a granted TTL: the wanted one, or for 0 the
// larger of TTL/10 and MinMargin. A margin that leaves nothing of the TTL is
// refused.
func marginOf(wanted, granted time.Duration) (time.Duration, error) {
	margin := wanted
	if margin == 0 {
		margin = max(granted/10, MinMargin)
	}
	if margin < 0 || margin >= granted {
		return 0, fmt.Errorf("%w: the margin %v must be at least 0 and less than the TTL %v", eldest.ErrInvalid, margin, granted)
	}
	return margin, nil
}
