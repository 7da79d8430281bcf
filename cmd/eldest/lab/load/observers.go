package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/observe"
)

// observers are goroutines that read a subscription each.
type observers struct {
	book      *book
	observers []*observe.Observer
	newest    []atomic.Int64 // the highest token, by reader
	readers   sync.WaitGroup
	leave     context.CancelFunc
}

// observe starts observers, which use the clients in turn.
func (r *run) observe(clients []*clientv3.Client) error {
	ctx, leave := context.WithCancel(context.Background())
	o := &observers{book: r.book, newest: make([]atomic.Int64, r.scale.Observers), leave: leave}
	r.observers = o
	for _, cli := range clients {
		observer, err := observe.New(observe.Config{Election: candidates, KV: cli, Watcher: cli})
		if err != nil {
			return err
		}
		o.observers = append(o.observers, observer)
	}
	for i := range o.newest {
		from := o.observers[i%len(o.observers)].Subscribe()
		o.readers.Go(func() { o.read(ctx, from, i) })
	}
	return nil
}

func (o *observers) read(ctx context.Context, from *observe.Subscription, i int) {
	for {
		state, err := from.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			o.book.violation("observer %d has ended: %v", i, err)
			return
		}
		switch state.Kind {
		case eldest.Led:
			token := int64(state.Leader.Token)
			if last := o.newest[i].Swap(token); token < last {
				o.book.violation("G6: observer %d was notified of token %d after %d", i, token, last)
			}
		case eldest.Unknown:
			if i < len(o.observers) { // one for each watch
				o.book.failed("observe", state.Reason)
			}
		}
	}
}

// behind returns how many readers have not received a token yet, nor a newer one.
func (o *observers) behind(token eldest.Token) (n int) {
	for i := range o.newest {
		if o.newest[i].Load() < int64(token) {
			n++
		}
	}
	return n
}

func (o *observers) close() {
	o.leave()
	for _, observer := range o.observers {
		observer.Close()
	}
	o.readers.Wait()
}

// glance is the interval of checks whether all observers have been notified: it is the error of the
// reported times.
const glance = 10 * time.Millisecond

// converge measures, for one win after the other, how long it takes until all observers have been
// notified of it, or of a newer one, until ctx ends.
func (r *run) converge(ctx context.Context) {
	for last := eldest.Token(0); scenario.Sleep(ctx, glance) == nil; {
		token, at, _ := r.newest.get()
		if token == last {
			continue
		}
		last = token
		if r.told(ctx, token) {
			r.book.took("all observers have heard of a leader", time.Since(at))
			r.book.count("convergences")
		}
	}
}

func (r *run) told(ctx context.Context, token eldest.Token) bool {
	for due := time.Now().Add(r.scale.patience()); r.observers.behind(token) > 0; {
		if time.Now().After(due) {
			r.book.late("%d observers have not been notified of token %d for %v", r.observers.behind(token), token, r.scale.patience())
			return false
		}
		if scenario.Sleep(ctx, glance) != nil {
			return false
		}
	}
	return true
}

// newest is the newest tenure of the candidates.
type newest struct {
	mu    sync.Mutex
	token eldest.Token
	at    time.Time // when it was won
	over  bool
}

func (n *newest) won(token eldest.Token, at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if token > n.token {
		n.token, n.at, n.over = token, at, false
	}
}

func (n *newest) ended(token eldest.Token) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = n.over || token == n.token
}

// get returns the newest token, when it was won, and whether it leads.
func (n *newest) get() (token eldest.Token, at time.Time, leads bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.token, n.at, n.token > 0 && !n.over
}
