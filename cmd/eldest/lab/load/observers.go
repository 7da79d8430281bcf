package load

import (
	"context"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/observe"
)

// watch starts observers and their readers, which read until all candidates have left.
func (r *run) watch() error {
	clients, err := r.dial(r.scale.Watchers)
	if err != nil {
		return err
	}
	var observers []*observe.Observer
	for _, client := range clients {
		o, err := observe.New(observe.Config{Election: candidates, KV: client, Watcher: client})
		if err != nil {
			return err
		}
		observers = append(observers, o)
		r.atEnd(func() error { o.Close(); return nil })
	}
	ctx, leave := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	r.atEnd(func() error { leave(); readers.Wait(); return nil })
	for i := range r.seen {
		from := observers[i%len(observers)].Subscribe()
		readers.Go(func() { r.read(ctx, from, i) })
	}
	return nil
}

// read reads a subscription until ctx ends.
func (r *run) read(ctx context.Context, from *observe.Subscription, i int) {
	for {
		state, err := from.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.book.violation("observer %d has ended: %v", i, err)
			return
		case state.Kind == eldest.Led:
			token := int64(state.Leader.Token)
			if last := r.seen[i].Swap(token); token < last {
				r.book.violation("G6: observer %d was notified of token %d after %d", i, token, last)
			}
		case state.Kind == eldest.Unknown && i < r.scale.Watchers: // one for each watch
			r.book.failed("observe", state.Reason)
		}
	}
}

// converge measures how long it takes from a win until all observers have been notified of it, or
// of a newer one. The end of ctx ends it.
func (r *run) converge(ctx context.Context, token eldest.Token) {
	begun := time.Now()
	for i := range r.seen {
		for r.seen[i].Load() < int64(token) {
			if time.Since(begun) > r.scale.patience() {
				r.book.late("observer %d has not been notified of token %d for %v", i, token, r.scale.patience())
				return
			}
			if retry.Sleep(ctx, time.Millisecond) != nil {
				return
			}
		}
	}
	r.book.took("all observers have heard of a leader", time.Since(begun))
	r.book.count("convergences")
}
