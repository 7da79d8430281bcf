package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/observe"
)

// crowd is the observers: each a goroutine that reads a subscription of its own.
type crowd struct {
	book      *Book
	observers []*observe.Observer
	newest    []atomic.Int64 // the highest token, by reader
	readers   sync.WaitGroup
	leave     context.CancelFunc
}

// gather brings the observers into place, over the clients in turn.
func gather(book *Book, clients []*clientv3.Client, n int) (*crowd, error) {
	ctx, leave := context.WithCancel(context.Background())
	c := &crowd{book: book, newest: make([]atomic.Int64, n), leave: leave}
	for _, cli := range clients {
		o, err := observe.New(observe.Config{Election: candidates, KV: cli, Watcher: cli})
		if err != nil {
			c.close()
			return nil, err
		}
		c.observers = append(c.observers, o)
	}
	for i := range n {
		from := c.observers[i%len(c.observers)].Subscribe()
		c.readers.Go(func() { c.read(ctx, from, i) })
	}
	return c, nil
}

// read is one observer's life.
func (c *crowd) read(ctx context.Context, from *observe.Subscription, i int) {
	for {
		state, err := from.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.book.violation("observer %d has ended: %v", i, err)
			return
		}
		switch state.Kind {
		case eldest.Led:
			token := int64(state.Leader.Token)
			if last := c.newest[i].Swap(token); token < last {
				c.book.violation("G6: observer %d was told token %d after %d", i, token, last)
			}
		case eldest.Unknown:
			if i < len(c.observers) { // one for each watch
				c.book.failed("observe", state.Reason)
			}
		}
	}
}

// behind is how many have not heard of a token yet, nor of a newer one.
func (c *crowd) behind(token eldest.Token) (n int) {
	for i := range c.newest {
		if c.newest[i].Load() < int64(token) {
			n++
		}
	}
	return n
}

// glance is how often the crowd is looked at until all have heard: its error, in what
// is reported of that.
const glance = 10 * time.Millisecond

// converge follows one win after the other and measures how long it takes until all
// observers have heard of it, or of a newer one, until ctx ends.
func (r *run) converge(ctx context.Context) {
	for {
		_, _, next := r.line.latest()
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
		token, at, _ := r.line.latest()
		if r.heard(ctx, token) {
			r.book.took("all observers have heard of a leader", time.Since(at))
			r.book.count("convergences")
		}
	}
}

// heard waits until all observers have heard of a token.
func (r *run) heard(ctx context.Context, token eldest.Token) bool {
	deadline := time.Now().Add(r.scale.patience())
	look := time.NewTicker(glance)
	defer look.Stop()
	for r.crowd.behind(token) > 0 {
		if time.Now().After(deadline) {
			r.book.late("%d observers have not heard of token %d for %v", r.crowd.behind(token), token, r.scale.patience())
			return false
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// close sends everybody home.
func (c *crowd) close() {
	c.leave()
	for _, o := range c.observers {
		o.Close()
	}
	c.readers.Wait()
}
