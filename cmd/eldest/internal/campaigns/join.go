package campaigns

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// join has a lease granted, and makes a candidate with it.
func join(ctx context.Context, cfg Config, client *clientv3.Client, value string) (candidate, error) {
	if cfg.Contender == Concurrency {
		return joinTheirs(ctx, cfg, client, value)
	}
	session, err := lease.Open(ctx, lease.Config{Lease: client, TTL: cfg.TTL})
	if err != nil {
		return nil, err
	}
	c, err := election.New(election.Config{
		Election: cfg.Election, Session: session, KV: client, Watcher: client, Value: []byte(value),
		Recheck: -1, // no second looks at quiet watches, which would come when they come
	})
	if err != nil {
		session.Abandon()
		return nil, err
	}
	return &ours{session: session, candidate: c, done: make(chan struct{})}, nil
}

// ours is a candidate of package election.
type ours struct {
	session    *lease.Session
	candidate  *election.Candidate
	leadership *election.Leadership // set by await
	done       chan struct{}
}

func (o *ours) stand(ctx context.Context) error {
	_, err := o.candidate.Register(ctx)
	return err
}

func (o *ours) await(ctx context.Context) error {
	l, err := o.candidate.Await(ctx)
	if err != nil {
		return err
	}
	o.leadership = l
	context.AfterFunc(l.Context(), func() { close(o.done) })
	return nil
}

func (o *ours) resign(ctx context.Context) error   { return o.leadership.Resign(ctx) }
func (o *ours) withdraw(ctx context.Context) error { return o.candidate.Withdraw(ctx) }
func (o *ours) lost() <-chan struct{}              { return o.done }
func (o *ours) key() string                        { return o.candidate.Key() }

func (o *ours) close(ctx context.Context) {
	err := o.candidate.Close(ctx)
	if err = errors.Join(err, o.session.Close(ctx)); err != nil && !errors.Is(err, eldest.ErrSessionLost) {
		o.session.Abandon()
	}
}
