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

const (
	// loadWriters bounds the writes in progress at the same time: a cluster that does not keep up
	// gets fewer writes than requested, not more of them at once.
	loadWriters = 32
	// maxLoad is more writes a second than any etcd cluster can process.
	maxLoad = 100_000
	// loadTTL is the TTL of the load's lease, in seconds: if a run is killed its keys remain for
	// that long.
	loadTTL = 60
)

// load writes to keys outside of every election, at the rate that the options set, until stop is
// called. stop waits, removes the keys and reports for the regime how many writes were done. load
// returns after the first second, when the load is steady.
func (r *run) load(regime string) (stop func()) {
	r.report.Setup.Load = r.options.Load
	client := must(r.site.dial())
	live, cancel := context.WithCancel(r.ctx)
	granted, err := client.Grant(r.ctx, loadTTL)
	var alive <-chan *clientv3.LeaseKeepAliveResponse
	if err == nil {
		alive, err = client.KeepAlive(live, granted.ID)
	}
	if err != nil {
		cancel()
		_ = client.Close()
		check(fmt.Errorf("a lease for the load: %w", err))
	}
	go func() {
		for range alive {
			continue // the client reads the TTL itself
		}
	}()
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
	stop = func() {
		cancel()
		took := time.Since(begun)
		running.Wait()
		ticker.Stop()
		if r.report.Setup.Written == nil {
			r.report.Setup.Written = map[string]Written{}
		}
		r.report.Setup.Written[regime] = Written{PerSecond: float64(done.Load()) / took.Seconds(), Failed: failed.Load()}
		ctx, cancel := context.WithTimeout(r.cleanup, cleanupTimeout)
		defer cancel()
		_, _ = client.Revoke(ctx, granted.ID) // on an error the keys expire
		_ = client.Close()
	}
	_ = retry.Sleep(r.ctx, time.Second)
	return stop
}
