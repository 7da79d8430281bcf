package sandbox

import (
	"context"
	"sync"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/observe"
)

// observer is one observer of the election, as applications have it, with a network without faults.
type observer struct {
	in *Sandbox
	*observe.Observer

	mu   sync.Mutex
	last *feed.ObserverState // nil: none yet
}

func newObserver(in *Sandbox) (*observer, error) {
	o, err := observe.New(observe.Config{Election: in.cfg.Election, KV: in.field.All, Watcher: in.field.All})
	if err != nil {
		return nil, err
	}
	return &observer{in: in, Observer: o}, nil
}

// follow adds each state to the log until ctx ends, and then closes the observer.
func (o *observer) follow(ctx context.Context) {
	defer o.Close()
	subscription := o.Subscribe()
	for {
		state, err := subscription.Next(ctx)
		if err != nil {
			if ctx.Err() == nil { // etcd has refused permanently
				o.in.problem(err)
			}
			return
		}
		o.mu.Lock()
		o.last = stateOf(state)
		o.shown()
		o.mu.Unlock()
	}
}

func (o *observer) showAgain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shown()
}

// shown adds the newest state to the log. The caller holds the mutex.
func (o *observer) shown() {
	if o.last != nil {
		state := *o.last
		o.in.log.Add(feed.Event{Type: feed.Observer, Who: "observer", Observer: &state})
	}
}

func stateOf(s eldest.State) *feed.ObserverState {
	told := &feed.ObserverState{
		State: s.Kind.String(), Token: int64(s.Leader.Token), Key: s.Leader.Key, Value: shortened(string(s.Leader.Value)),
	}
	if s.Reason != nil {
		told.Why = shortened(s.Reason.Error())
	}
	return told
}
