package redispeer

import (
	"context"
	"math/rand/v2"
	"time"
)

// A candidate that waits tries again after minRetry at least, and maxRetry at most: redsync's defaults.
const (
	minRetry = 50 * time.Millisecond
	maxRetry = 250 * time.Millisecond
)

// pause sleeps as long as a candidate that waits, or until ctx ends.
func pause(ctx context.Context) {
	timer := time.NewTimer(minRetry + rand.N(maxRetry-minRetry))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Observe reads the lock as often as a candidate that waits tries to lock it: redsync has no observers.
func (c *client) Observe(ctx context.Context, leads func(id string)) error {
	for last := ""; ctx.Err() == nil; pause(ctx) {
		if value := c.value(ctx); value != "" && value != last {
			last = value
			leads(holder(value))
		}
	}
	return ctx.Err()
}

// value returns the lock's value in the majority of the servers, or "" if it has none. A server that does not
// answer counts as one without the lock, as it does for redsync.
func (c *client) value(ctx context.Context) string {
	in := map[string]int{}
	for _, server := range c.servers {
		value, err := server.Get(ctx, c.lockKey()).Result()
		if err != nil {
			continue // redis.Nil, too: there is no lock
		}
		if in[value]++; in[value] > len(c.servers)/2 {
			return value
		}
	}
	return ""
}
