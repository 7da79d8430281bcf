package bench

import (
	"context"
	"sync"
	"time"
)

// outcome is how a campaign ended.
type outcome struct {
	at  time.Time
	err error
}

// campaign has a candidate campaign in the background. The outcome is delivered once;
// ctx ends it, with its cause, whether or not the contender heeds it: etcd's own package
// takes a canceled campaign back under the client's context, for as long as the cluster
// does not answer. What it leaves behind then ends with the client.
func campaign(ctx context.Context, c Candidate) <-chan outcome {
	result := make(chan outcome, 1)
	var once sync.Once
	deliver := func(o outcome) { once.Do(func() { result <- o }) }
	stop := context.AfterFunc(ctx, func() { deliver(outcome{err: context.Cause(ctx)}) })
	go func() {
		at, err := c.Campaign(ctx)
		stop()
		deliver(outcome{at, err})
	}()
	return result
}

// lead is campaign for a candidate that nobody is ahead of: it blocks until the outcome.
func lead(ctx context.Context, c Candidate) (time.Time, error) {
	o := <-campaign(ctx, c)
	return o.at, o.err
}
