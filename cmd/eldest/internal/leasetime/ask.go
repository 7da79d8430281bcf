package leasetime

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
)

// Left is an answer of etcd about a lease.
type Left struct {
	// TTL is the time that the lease had left, in whole seconds, rounded down; negative if the lease
	// was over.
	TTL time.Duration
	// Granted is the time for which the lease was granted; 0 if it was over.
	Granted time.Duration
	// Asked is when the request was sent, and Answered when the answer came: unless it is revoked, the
	// lease does not end before Asked + TTL.
	Asked, Answered time.Time
}

const (
	// requests is how many requests are sent at a time, each for timeout at most.
	requests, timeout = 8, time.Second
)

// Ask asks etcd for leases. Those without an answer are missing in the result, and failed is called
// with the reason, concurrently. It blocks until all are answered, or a second has passed without an
// answer, or ctx ends.
func Ask(ctx context.Context, client clientv3.Lease, leases []int64, failed func(error)) map[int64]Left {
	var mu sync.Mutex
	found := map[int64]Left{}
	next := make(chan int64)
	var asking sync.WaitGroup
	var silent atomic.Bool // etcd does not answer: the rest would wait in vain
	for range min(requests, len(leases)) {
		asking.Go(func() {
			for lease := range next {
				if silent.Load() {
					continue
				}
				left := Left{Asked: time.Now()}
				once, cancel := context.WithTimeout(ctx, timeout)
				answer, err := client.TimeToLive(once, clientv3.LeaseID(lease))
				cancel()
				if err != nil {
					silent.CompareAndSwap(false, connect.Silent(err))
					failed(err)
					continue
				}
				left.TTL, left.Answered = time.Duration(answer.TTL)*time.Second, time.Now()
				if answer.TTL >= 0 {
					left.Granted = time.Duration(answer.GrantedTTL) * time.Second
				}
				mu.Lock()
				found[lease] = left
				mu.Unlock()
			}
		})
	}
	for _, lease := range leases {
		next <- lease
	}
	close(next)
	asking.Wait()
	return found
}
