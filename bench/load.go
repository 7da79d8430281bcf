package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest/internal/retry"
)

const (
	// loadWriters bounds the writes in progress at the same time: a cluster that does not keep up
	// gets fewer writes than requested, not more of them at once.
	loadWriters = 32
	// maxLoad is more writes a second than any etcd cluster can process.
	maxLoad = 100_000
)

// load writes to keys outside of every election, at the rate that the options set, until stop is
// called. stop waits, removes the keys and reports for the regime how many writes were done. load
// returns after the first second, when the load is steady.
func (r *run) load(regime string) (stop func()) {
	r.report.Setup.Load = r.options.Load
	keys := r.newLeased()
	live, cancel := context.WithCancel(r.ctx)
	var done, failed, next atomic.Int64
	var running sync.WaitGroup
	begun, ticker := time.Now(), time.NewTicker(time.Second/time.Duration(r.options.Load))
	for range loadWriters {
		running.Go(func() {
			for {
				select {
				case <-ticker.C: // ticks are dropped while no writer is free
				case <-live.Done():
					return
				}
				n := next.Add(1)
				switch err := keys.put(live, fmt.Sprintf("%s-load/%d", r.name, n%64), fmt.Sprintf("%064d", n)); {
				case err == nil:
					done.Add(1)
				case live.Err() == nil:
					failed.Add(1)
				}
			}
		})
	}
	stop = func() {
		cancel()
		took := time.Since(begun)
		running.Wait()
		ticker.Stop()
		if r.report.Setup.Written == nil {
			r.report.Setup.Written = map[string]Written{}
		}
		r.report.Setup.Written[regime] = Written{PerSecond: float64(done.Load()) / took.Seconds(), Failed: failed.Load()}
		keys.remove()
	}
	_ = retry.Sleep(r.ctx, time.Second)
	return stop
}
