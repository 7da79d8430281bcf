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
	// loadWriters bounds the writes that are under way at a time: a cluster that does not
	// keep up gets fewer writes than requested, and not more of them at once.
	loadWriters = 32
	// maxLoad is more writes a second than any etcd takes.
	maxLoad = 100_000
	// loadTTL is that of the load's lease, in seconds: its keys remain for so long after a
	// run that was killed.
	loadTTL = 60
)

// load writes to keys outside of every election, as often as the options say, until stop is
// called, which waits, removes the keys and reports for the regime how many were
// written. It returns after the first second, when the load is steady.
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
				case <-ticker.C: // which drops what no writer takes
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
		_, _ = client.Revoke(ctx, granted.ID) // or the keys expire
		_ = client.Close()
	}
	_ = retry.Sleep(r.ctx, time.Second)
	return stop
}
