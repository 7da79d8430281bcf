package elector

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/observe"
)

// follow publishes the leader that the node follows, until stop has returned. The error wraps
// eldest.ErrInvalid.
func (r *round) follow(ctx context.Context) (stop func(), err error) {
	observer, err := r.observer()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for refused := 0; ; refused++ {
			r.observe(ctx, observer)
			r.closing.Go(observer.Close)
			// An observer ends by itself if etcd refuses permanently. But a permission may be
			// granted later, and the node remains in the queue meanwhile.
			if retry.Sleep(ctx, pause(refused)) != nil {
				return
			}
			next, err := r.observer()
			if err != nil {
				return
			}
			observer = next
		}
	}()
	return func() {
		cancel()
		<-done
	}, nil
}

var pause = retry.Default()

func (r *round) observer() (*observe.Observer, error) {
	cfg := observe.Config{
		Election: r.e.cfg.Election, KV: r.clients.KV, Watcher: r.clients.Watcher, Options: r.e.cfg.Observer,
	}
	if r.standby != nil {
		cfg.Key = r.candidate.Key()
	}
	return observe.New(cfg)
}

// observe publishes what an observer reports until that ends or ctx does.
func (r *round) observe(ctx context.Context, observer *observe.Observer) {
	positions := observer.Positions()
	var over func() error
	if r.session != nil { // a position in the queue is valid as long as its lease
		over = r.session.Err
	}
	to := r.locator(over)
	defer to.stop()
	for {
		position, err := positions.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			to.stop()
			r.publish(unknown(err), nil, -1)
			return
		}
		to.publish(ctx, r.seen(position.State), position.Ahead)
	}
}

// publish publishes a status, and tells the standby function.
func (r *round) publish(s Status, over func() error, ahead int) {
	r.e.publish(s, over)
	if r.standby != nil {
		s = r.e.Status()
		if over != nil && over() != nil {
			ahead = -1 // by the clock the session is lost
		}
		r.standby.positions.Set(Position{Status: s, Ahead: ahead})
	}
}

// seen returns the status of a node that does not lead, from an observer's state.
//
// Invariant: a node never follows itself, nor another instance of itself. Its key is the eldest for
// a moment before the win is proven, and may be after a loss; a node that forwarded requests to
// itself would forward them in a circle.
func (r *round) seen(state eldest.State) Status {
	e := r.e
	if state.Kind == eldest.Led {
		r.newest = max(r.newest, state.Leader.Token)
	}
	nobody := func(err error) Status { return unknown(e.failed("follow", err)) }
	switch {
	case state.Kind == eldest.Unknown:
		return unknown(state.Reason)
	case state.Kind == eldest.Nobody:
		return nobody(eldest.ErrNoLeader)
	case r.session != nil && state.Leader.Lease == int64(r.session.ID()):
		return nobody(errLeads)
	}
	id, err := e.cfg.Codec.Decode(state.Leader.Value)
	switch {
	case err != nil:
		return nobody(fmt.Errorf("key %q leads: %w", state.Leader.Key, err))
	case id.NodeID == e.cfg.NodeID && id.Instance == e.instance:
		return nobody(fmt.Errorf("%w: key %q belongs to an earlier session of this node", eldest.ErrNoLeader, state.Leader.Key))
	case id.NodeID == e.cfg.NodeID:
		return nobody(fmt.Errorf("%w: key %q belongs to another instance with this node ID: if that instance is still running, two processes share the ID",
			eldest.ErrNoLeader, state.Leader.Key))
	}
	return follows(Leader{Identity: id, Key: state.Leader.Key, Token: state.Leader.Token, value: string(state.Leader.Value)})
}
