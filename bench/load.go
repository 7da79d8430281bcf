package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/retry"
)

// loadWriters bounds the writes that are under way at a time: a cluster that does not
// keep up gets fewer writes than asked for, not ever more of them at once.
const loadWriters = 32

// maxLoad is more writes a second than any etcd takes.
const maxLoad = 100_000

// loadTTL is that of the load's lease, in seconds: for so long at most its keys outlive a
// run that was killed.
const loadTTL = 60

// Written is what became of the background writes of a regime: less than was asked for
// where the cluster did not keep up.
type Written struct {
	PerSecond float64 `json:"per_second"`
	Failed    int64   `json:"failed,omitempty"`
}

// load writes to keys outside of every election, so many times a second, until stop is
// called, which waits, removes the keys and notes under the regime's name what was
// written. It returns after the first second, when the load is steady.
func (r *run) load(ctx context.Context, regime string, perSecond int) (stop func(), err error) {
	client, err := r.site.dial()
	if err != nil {
		return nil, err
	}
	granted, err := client.Grant(ctx, loadTTL)
	if err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("a lease for the load: %w", err)
	}
	live, cancel := context.WithCancel(ctx)
	renewals, err := client.KeepAlive(live, granted.ID)
	if err != nil {
		cancel()
		_ = client.Close()
		return nil, fmt.Errorf("a lease for the load: %w", err)
	}
	var done, failed atomic.Int64
	ticks := make(chan int)
	var writers sync.WaitGroup
	writers.Go(func() {
		for range renewals {
			continue // the client reads them itself
		}
	})
	for range loadWriters {
		writers.Go(func() {
			for n := range ticks {
				_, err := client.Put(live, fmt.Sprintf("%s-load/%d", r.name, n%64), fmt.Sprintf("%064d", n), clientv3.WithLease(granted.ID))
				switch {
				case err == nil:
					done.Add(1)
				case live.Err() == nil:
					failed.Add(1)
				}
			}
		})
	}
	begun := time.Now()
	writers.Go(func() {
		defer close(ticks)
		drip(live, perSecond, ticks)
	})
	stop = func() {
		cancel()
		took := time.Since(begun)
		writers.Wait()
		if r.report.Setup.Written == nil {
			r.report.Setup.Written = map[string]Written{}
		}
		r.report.Setup.Written[regime] = Written{PerSecond: float64(done.Load()) / took.Seconds(), Failed: failed.Load()}
		last, cancel := context.WithTimeout(r.last, farewell)
		defer cancel()
		_, _ = client.Revoke(last, granted.ID) // the keys go with it, by themselves otherwise
		_ = client.Close()
	}
	if err := retry.Sleep(ctx, time.Second); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// drip counts into ticks, so many times a second, until ctx ends. Nobody there to take
// one means one less.
func drip(ctx context.Context, perSecond int, ticks chan<- int) {
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		select {
		case ticks <- n:
		case <-ctx.Done():
			return
		}
	}
}
