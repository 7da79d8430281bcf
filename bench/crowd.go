package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/retry"
)

// CrowdSize says how many observers a host gets.
type CrowdSize struct {
	// Observers is how many there are in all, Slow how many of them take their
	// time over each reading.
	Observers int `json:"observers"`
	Slow      int `json:"slow,omitempty"`
}

// Crowd is many observers of one election on one host, each of them a goroutine that
// reads a feed of its own.
type Crowd interface {
	// Await blocks until every observer that is not slow has seen that the
	// candidate of this key leads, now or earlier, or ctx ends, or an observer has
	// failed. It forgets what it reports: a key can be awaited once.
	Await(ctx context.Context, key string) (Seen, error)
	// Close ends all observers and waits for them; ctx bounds what etcd is told.
	Close(ctx context.Context)
}

// Seen is when the first and the last observer saw something.
type Seen struct{ First, Last time.Time }

// slowness is how long a slow observer takes over each reading: so long that it is
// often away when the next one comes.
const slowness = time.Second

// placing bounds how many observers take their places at a time, and how many
// sessions are closed: a server should not drown in what is not measured.
const placing = 64

// Observe gathers a crowd in this process.
func (l *local) Observe(ctx context.Context, name, election string, size CrowdSize) (Crowd, error) {
	c, err := contender.Named(name)
	if err != nil {
		return nil, err
	}
	sight, err := c.Sight(ctx, l.client, election)
	if err != nil {
		return nil, err
	}
	return gather(ctx, sight, size)
}

// crowd is a Crowd in this process. What an observer does to note what it saw costs it
// an atomic store and no lock: that cost is in everybody's figures.
type crowd struct {
	sight contender.Sight
	fast  int
	// begun is what times are counted from, by the monotonic clock.
	begun     time.Time
	leave     context.CancelFunc
	observers sync.WaitGroup

	seen sync.Map   // of *sighting, by key
	mu   sync.Mutex // held to make a sighting

	failing sync.Once
	failed  chan struct{} // closed once cause is there
	cause   error
}

// sighting is who has seen a leader, and when.
//
// Invariant: left is the number of zeros in at.
type sighting struct {
	at   []atomic.Int64 // since begun, by observer
	left atomic.Int64
	done chan struct{} // closed when left is 0
}

// gather brings a crowd into place: it blocks until each observer has had its first
// news, for which somebody should lead already, or ctx ends.
func gather(ctx context.Context, sight contender.Sight, size CrowdSize) (Crowd, error) {
	live, leave := context.WithCancel(context.WithoutCancel(ctx))
	c := &crowd{
		sight: sight, fast: size.Observers - size.Slow, begun: time.Now(), leave: leave,
		failed: make(chan struct{}),
	}
	atATime := make(chan struct{}, placing)
	for i := range size.Observers {
		atATime <- struct{}{}
		c.observers.Go(func() { c.observe(ctx, live, i, func() { <-atATime }) })
	}
	for range placing {
		atATime <- struct{}{} // until the last has its place
	}
	select {
	case <-c.failed:
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
		defer cancel()
		c.Close(last)
		return nil, c.cause
	default:
		return c, nil
	}
}

// observe is one observer's life. Until it is placed it lives under ctx, then under
// live. The first observers are fast, the others slow.
func (c *crowd) observe(ctx, live context.Context, i int, placed func()) {
	feed, err := c.sight.Feed(ctx)
	if err == nil {
		err = c.read(ctx, feed, i)
	}
	if err != nil {
		c.fail(err)
	}
	placed()
	for err == nil {
		if i >= c.fast {
			err = retry.Sleep(live, slowness)
		}
		if err == nil {
			err = c.read(live, feed, i)
		}
	}
	if live.Err() == nil {
		c.fail(err)
	}
}

// read takes one reading, and notes it.
func (c *crowd) read(ctx context.Context, feed contender.Feed, i int) error {
	key, err := feed.Next(ctx)
	if err != nil || key == "" || i >= c.fast {
		return err
	}
	at := time.Since(c.begun)
	s := c.sighting(key)
	if s.at[i].CompareAndSwap(0, int64(at)) && s.left.Add(-1) == 0 {
		close(s.done)
	}
	return nil
}

// sighting returns that of a key, with nobody in it yet if it is new.
func (c *crowd) sighting(key string) *sighting {
	if s, ok := c.seen.Load(key); ok {
		return s.(*sighting)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.seen.Load(key); ok {
		return s.(*sighting)
	}
	s := &sighting{at: make([]atomic.Int64, c.fast), done: make(chan struct{})}
	s.left.Store(int64(c.fast))
	if c.fast == 0 {
		close(s.done)
	}
	c.seen.Store(key, s)
	return s
}

func (c *crowd) fail(err error) {
	c.failing.Do(func() {
		c.cause = fmt.Errorf("observing: %w", err)
		close(c.failed)
	})
}

// Await waits for a sighting to be complete.
func (c *crowd) Await(ctx context.Context, key string) (Seen, error) {
	s := c.sighting(key)
	select {
	case <-s.done:
	case <-c.failed:
		return Seen{}, c.cause
	case <-ctx.Done():
		return Seen{}, fmt.Errorf("%d of %d observers do not know yet: %w", s.left.Load(), c.fast, context.Cause(ctx))
	}
	c.seen.Delete(key)
	var first, last int64
	for i := range s.at {
		at := s.at[i].Load()
		if last = max(last, at); first == 0 || at < first {
			first = at
		}
	}
	return Seen{First: c.begun.Add(time.Duration(first)), Last: c.begun.Add(time.Duration(last))}, nil
}

// Close sends everybody home.
func (c *crowd) Close(ctx context.Context) {
	c.leave()
	c.sight.Close(ctx)
	c.observers.Wait()
}
