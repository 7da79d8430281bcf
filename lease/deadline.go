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
	// MaxTTL is the longest TTL that Open asks for. Whoever crashes blocks the
	// queue for its TTL; more than a day is a mistake, most likely of units.
	MaxTTL = 24 * time.Hour
	// MinMargin is the smallest default margin. Measured: it covers a clock rate
	// that is off by a tenth at a TTL of 2 s, far more than hardware clocks show.
	MinMargin = 200 * time.Millisecond
)

// seconds turns a wanted TTL into what etcd takes: whole seconds, rounded UP,
// because rounding down would ask for less time than the caller relies on. 0 is
// DefaultTTL. Negative and absurd ones are refused.
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

// deadline is a reading of the session's clock: the first instant at which the
// lease is no longer certain.
//
// Invariant: deadline <= the instant at which the server may expire the lease,
// as long as the two clocks' rates differ by less than margin / TTL.
type deadline time.Duration

// deadlineAfter gives the deadline that a grant or renewal earns which was sent
// at the reading sent and answered with the TTL granted.
func deadlineAfter(sent, granted, margin time.Duration) deadline {
	return deadline(sent + granted - margin)
}

// passed reports whether the lease is no longer certain at the reading now.
func (d deadline) passed(now time.Duration) bool { return now >= time.Duration(d) }

// left returns how much certain time is left at the reading now; never negative.
func (d deadline) left(now time.Duration) time.Duration { return max(0, time.Duration(d)-now) }

// renewed returns the deadline after a successful renewal, sent and received at
// the given readings. ok is false when the reply came too late to prove anything:
// read at or after the old deadline.
func (d deadline) renewed(sent, received, granted, margin time.Duration) (next deadline, ok bool) {
	if d.passed(received) {
		return d, false
	}
	// The newest answer counts even where it is the shorter one, and even where
	// it has passed already: a server that lowered the TTL expires the lease by
	// the lower one.
	return deadlineAfter(sent, granted, margin), true
}
