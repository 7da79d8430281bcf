package sandbox

import (
	"context"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/observe"
)

// observe adds each state of an observer to the log, until ctx ends, and then closes it. The observer is
// one as applications have it, with a network without faults.
func (s *Sandbox) observe(ctx context.Context, o *observe.Observer) {
	defer o.Close()
	subscription := o.Subscribe()
	for {
		state, err := subscription.Next(ctx)
		if err != nil {
			if ctx.Err() == nil { // etcd has refused permanently
				s.problem(err)
			}
			return
		}
		s.log.Add(feed.Event{Type: feed.Observer, Who: "observer", Observer: stateOf(state)})
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
