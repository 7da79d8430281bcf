package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff gives the pause after the attempt-th failure in a row, counted from 0.
// It must be safe for concurrent use.
type Backoff func(attempt int) time.Duration

// Jittered returns a back-off that doubles from first up to limit; each pause is
// drawn evenly from the upper half of its step, so two clients that failed
// together do not return together, and none returns at once.
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

// Spread returns d less a random part of up to span.
func Spread(d, span time.Duration) time.Duration {
	if span <= 0 {
		return d
	}
	return d - rand.N(span)
}

// Default is the back-off of every room: quick enough that a hand-over during a
// change of the etcd leader is not delayed noticeably, at most a request a
// second from each client of a server that is away.
func Default() Backoff { return usual }

var usual = Jittered(25*time.Millisecond, time.Second)

// Least is the shortest pause that a back-off of the user's may give. 200 attempts a second
// do no harm to an etcd that is overloaded, and nothing is gained by more: a request that
// fails on an idle machine takes a millisecond.
const Least = 5 * time.Millisecond

// Or returns the back-off for a config whose field holds custom: fallback if that is nil,
// else custom, of which each pause is Least or longer.
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
		return context.Cause(ctx) // select draws when both are ready
	}
}

// Wait blocks until done is closed, or ctx ends; then it returns the context's
// cause. What is done already counts, even under a context that has ended.
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
