package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff gives the pause after the attempt-th failure in a row, counted from 0.
// It must be safe for concurrent use.
type Backoff func(attempt int) time.Duration

// Jittered returns a back-off that doubles from first up to limit. Each pause is drawn uniformly
// from the upper half of its step, so clients that failed together do not retry together, and none
// retries at once.
func Jittered(first, limit time.Duration) Backoff {
	return func(attempt int) time.Duration {
		step := first
		for range attempt {
			if step >= limit/2 {
				step = limit
				break
			}
			step *= 2
		}
		return Spread(step, step/2)
	}
}

// Spread returns d minus a random duration of up to span.
func Spread(d, span time.Duration) time.Duration {
	if span <= 0 {
		return d
	}
	return d - rand.N(span)
}

// Default is the default back-off of all packages. It is so short that a change of the etcd leader
// does not delay a hand-over noticeably, and gives a server that is unavailable at most one request
// a second from each client.
func Default() Backoff { return usual }

var usual = Jittered(25*time.Millisecond, time.Second)

// Least is the shortest pause that a user's back-off may give. 200 attempts a second do no harm to
// an etcd that is overloaded. More attempts have no advantage: a request that fails on an idle
// machine takes a millisecond.
const Least = 5 * time.Millisecond

// Or returns the back-off for a config field: fallback if custom is nil, else custom, with pauses
// of at least Least.
func Or(custom, fallback Backoff) Backoff {
	if custom == nil {
		return fallback
	}
	return func(attempt int) time.Duration { return max(custom(attempt), Least) }
}

// Sleep pauses for d, or until ctx ends; then it returns the context's cause.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return context.Cause(ctx) // if both are ready, select chooses at random
	}
}

// Wait blocks until done is closed, or ctx ends; then it returns the context's cause. If done is
// closed already, it returns nil, even if the context has ended.
func Wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
