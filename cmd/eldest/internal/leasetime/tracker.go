package leasetime

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// End is what is known about a lease whose key was deleted.
type End int

const (
	// Unclear means that the lease is over, or etcd did not answer, and whether the lease expired is not
	// known.
	Unclear End = iota
	// NotExpired means that the lease had time left: the key was deleted, or the lease was revoked.
	NotExpired
	// Expired means that the lease is over, and had less than a second left when etcd was last asked.
	Expired
)

const (
	// round is the time between two rounds of requests, perRound how many are sent in one at most.
	round, perRound = 100 * time.Millisecond, 2
	// soonest is the time between two requests for the same lease at least. A lease in its last second
	// is asked for at least once, unless more leases are in theirs than can be asked for.
	soonest = 500 * time.Millisecond
	// fresh is how old the last answer about a lease may be if it shall show that the lease expired.
	fresh = 2 * time.Second
)

// Tracker asks etcd for the time left of leases: for each when half of the time of its last answer has
// passed, and for 20 in a second at most, those first that are due for longest. Its methods may be
// called concurrently.
//
// A lease that is renewed in time never has less than a second left, if its TTL is 2 s or more and it
// is renewed after a third of that, as Eldest and etcd's client do. So Expired is wrong only of a
// lease that was renewed in its last second and was revoked within the two seconds after that.
type Tracker struct {
	client clientv3.Lease
	stop   context.CancelFunc
	done   chan struct{}
	added  chan struct{} // has a value after Add

	mu sync.Mutex
	// last has the last answer about each tracked lease in which it was not over; the zero value before
	// the first one.
	last map[int64]Left
}

// Track begins to ask. Requests that fail are repeated later. The caller closes the tracker.
func Track(client clientv3.Lease) *Tracker {
	ctx, stop := context.WithCancel(context.Background())
	t := &Tracker{client: client, stop: stop, done: make(chan struct{}), added: make(chan struct{}, 1), last: map[int64]Left{}}
	go t.run(ctx)
	return t
}

// Close ends the requests and waits for them.
func (t *Tracker) Close() {
	t.stop()
	<-t.done
}

// Add begins to track leases.
func (t *Tracker) Add(leases []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, lease := range leases {
		if _, present := t.last[lease]; !present {
			t.last[lease] = Left{}
		}
	}
	select {
	case t.added <- struct{}{}:
	default:
	}
}

// Ends ends the tracking of leases, and returns how they ended if their keys were deleted at a time, or
// before it. Where the last answers are not sufficient it asks etcd once more, and blocks for as long
// as Ask does.
func (t *Tracker) Ends(ctx context.Context, leases []int64, at time.Time) map[int64]End {
	ends, last := map[int64]End{}, map[int64]Left{}
	var doubtful []int64
	t.mu.Lock()
	for _, lease := range leases {
		left := t.last[lease]
		delete(t.last, lease)
		if at.Before(left.Asked.Add(left.TTL)) {
			ends[lease] = NotExpired
			continue
		}
		last[lease], doubtful = left, append(doubtful, lease)
	}
	t.mu.Unlock()
	for lease, now := range Ask(ctx, t.client, doubtful, func(error) {}) {
		if now.TTL >= 0 {
			ends[lease] = NotExpired
		} else if left := last[lease]; left.TTL < time.Second && at.Sub(left.Asked) <= fresh {
			ends[lease] = Expired
		}
	}
	return ends
}

func (t *Tracker) run(ctx context.Context) {
	defer close(t.done)
	for ctx.Err() == nil {
		due := t.due(time.Now())
		for lease, left := range Ask(ctx, t.client, due, func(error) {}) {
			t.mu.Lock()
			// That a lease is over is no newer evidence: the event of its key may be under way.
			if _, tracked := t.last[lease]; tracked && left.TTL >= 0 {
				t.last[lease] = left
			}
			t.mu.Unlock()
		}
		added := t.added
		if len(due) > 0 {
			added = nil // not at once: a burst of candidates must not be a burst of requests
		}
		select {
		case <-ctx.Done():
		case <-added:
		case <-time.After(round):
		}
	}
}

// due returns the leases to ask for.
func (t *Tracker) due(now time.Time) (leases []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	when := map[int64]time.Time{}
	for lease, left := range t.last {
		if at := left.Asked.Add(max(left.TTL/2, soonest)); !now.Before(at) {
			leases, when[lease] = append(leases, lease), at
		}
	}
	slices.SortFunc(leases, func(a, b int64) int { return cmp.Or(when[a].Compare(when[b]), cmp.Compare(a, b)) })
	return leases[:min(len(leases), perRound)]
}
