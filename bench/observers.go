package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/retry"
)

// slowness is how long a slow observer takes for each event: so long that it often misses the next
// one.
const slowness = time.Second

// observers is a number of observers of one election in this process, each of them a goroutine that
// reads its own feed. An observer notes what it saw with an atomic store and without a lock: that
// cost is in all contenders' figures.
type observers struct {
	sight contender.Sight
	fast  int // how many are not slow: the first ones
	begun time.Time
	// live ends with the observers; its cause is the error of the one that failed.
	live context.Context
	fail context.CancelCauseFunc
	all  sync.WaitGroup
	seen sync.Map // of *sighting, by key
}

// sighting records when the fast observers saw that a candidate leads.
//
// Invariant: left is the number of zeros in at.
type sighting struct {
	at   []atomic.Int64 // since begun, by observer
	left atomic.Int64
	done chan struct{} // closed when left is 0
}

// observe starts observers of a contender, and blocks until each of them has received the leader,
// or ctx ends.
func observe(ctx context.Context, of contender.Contender, client *clientv3.Client, election string, count, slow int) (*observers, error) {
	sight, err := of.Sight(ctx, client, election)
	if err != nil {
		return nil, err
	}
	return observeSight(ctx, sight, count, slow)
}

func observeSight(ctx context.Context, sight contender.Sight, count, slow int) (*observers, error) {
	o := &observers{sight: sight, fast: count - slow, begun: time.Now()}
	o.live, o.fail = context.WithCancelCause(context.WithoutCancel(ctx))
	feeds := make([]contender.Feed, count)
	err := parallel(ctx, count, func(ctx context.Context, i int) (err error) {
		if feeds[i], err = sight.Feed(ctx); err == nil {
			err = o.read(ctx, feeds[i], i)
		}
		return err
	})
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		o.close(ctx)
		return nil, fmt.Errorf("observing: %w", err)
	}
	for i, feed := range feeds {
		o.all.Go(func() {
			var err error
			for err == nil {
				if i >= o.fast {
					err = retry.Sleep(o.live, slowness)
				}
				if err == nil {
					err = o.read(o.live, feed, i)
				}
			}
			o.fail(fmt.Errorf("observing: %w", err))
		})
	}
	return o, nil
}

// read reads one event of the i-th observer and records it.
func (o *observers) read(ctx context.Context, feed contender.Feed, i int) error {
	leader, err := feed.Next(ctx)
	if err != nil || leader.Key == "" || i >= o.fast {
		return err
	}
	at := time.Since(o.begun)
	s := o.sighting(leader.Key)
	if s.at[i].CompareAndSwap(0, int64(at)) && s.left.Add(-1) == 0 {
		close(s.done)
	}
	return nil
}

// sighting returns the sighting of a key; it makes a new one if there is none.
func (o *observers) sighting(key string) *sighting {
	if s, ok := o.seen.Load(key); ok {
		return s.(*sighting)
	}
	fresh := &sighting{at: make([]atomic.Int64, o.fast), done: make(chan struct{})}
	fresh.left.Store(int64(o.fast))
	s, _ := o.seen.LoadOrStore(key, fresh)
	return s.(*sighting)
}

// await waits until all observers that are not slow have seen the key, and then drops its sighting.
func (o *observers) await(ctx context.Context, key string) (first, last time.Time, err error) {
	s := o.sighting(key)
	select {
	case <-s.done:
	case <-o.live.Done():
		return first, last, context.Cause(o.live)
	case <-ctx.Done():
		return first, last, fmt.Errorf("%d of %d observers have not seen the leader: %w", s.left.Load(), o.fast, context.Cause(ctx))
	}
	o.seen.Delete(key)
	least, most := s.at[0].Load(), s.at[0].Load()
	for i := range s.at {
		least, most = min(least, s.at[i].Load()), max(most, s.at[i].Load())
	}
	return o.begun.Add(time.Duration(least)), o.begun.Add(time.Duration(most)), nil
}

// close ends all observers and waits for them; ctx bounds the requests to etcd.
func (o *observers) close(ctx context.Context) {
	o.fail(nil)
	o.sight.Close(ctx)
	o.all.Wait()
}
