package liveness

import (
	"context"
	"time"

	"github.com/eldest-io/eldest/lease"
)

// While beats pulse each time that check succeeds, and calls check every so often, one at a time,
// until ctx ends. check gets a context that ends when the next one is due, so that one
// that hangs is a check that failed, if it heeds its context; if it does not, nothing beats
// either. It blocks: run it on a goroutine of its own, and wait for that.
func While(ctx context.Context, pulse *lease.Liveness, every time.Duration, check func(ctx context.Context) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		once, cancel := context.WithTimeout(ctx, every)
		err := check(once)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			pulse.Beat()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
