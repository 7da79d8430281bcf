package liveness

import (
	"context"
	"time"

	"github.com/eldest-io/eldest/lease"
)

// While beats pulse each time that check succeeds, and calls check at each interval, one call at a
// time, until ctx ends. The context of a check ends when the next one is due, so that a check that
// hangs has failed, if it heeds its context; if it does not, there are no beats either. While
// blocks: run it on a goroutine of its own, and wait for that.
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
			pulse.Alive()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
