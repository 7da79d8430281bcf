package actor

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// openEldest is this project, with its defaults, or tight.
func openEldest(ctx context.Context, at seat) (contender, error) {
	cfg := lease.Config{Lease: at.Client, TTL: at.TTL, Clock: at.Clock}
	if at.Tight {
		tighten(&cfg)
	}
	s, err := lease.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	c, err := election.New(election.Config{
		Election: at.Election, Session: s, KV: at.Client, Watcher: at.Client, Value: []byte(at.Value),
		Hooks: election.Hooks{Won: func(e election.WonEvent) { at.Proven(int64(e.Token), e.Revision) }},
	})
	if err != nil {
		s.Abandon()
		return nil, err
	}
	return &ours{client: at.Client, session: s, candidate: c}, nil
}

// tighten takes away what hides faults. The default margin covers an error of up to a tenth
// of the TTL, or of 200 ms, and the short time-out of a renewal all of a slow reply; without
// them the deadline itself has to be right, to the millisecond. A perfect clock is all that
// it takes.
func tighten(cfg *lease.Config) {
	cfg.Margin = time.Millisecond
	cfg.Renewal = func(granted time.Duration) lease.Renewal {
		r := lease.DefaultRenewal(granted)
		r.Timeout = granted * 6 / 10
		return r
	}
}

type ours struct {
	client    *clientv3.Client
	session   *lease.Session
	candidate *election.Candidate
}

func (c *ours) Lease() int64 { return int64(c.session.ID()) }
func (c *ours) Usable() bool { return c.session.Err() == nil }

func (c *ours) Campaign(ctx context.Context) (tenure, error) {
	l, err := c.candidate.Campaign(ctx)
	if err != nil {
		return nil, err
	}
	return &ourTenure{client: c.client, Leadership: l}, nil
}

func (c *ours) Close(ctx context.Context) {
	_ = c.candidate.Close(ctx) // what it did not come to the lease's end does
	_ = c.session.Close(ctx)
}

type ourTenure struct {
	*election.Leadership
	client *clientv3.Client
}

func (t *ourTenure) Token() int64 { return int64(t.Leadership.Token()) }
func (t *ourTenure) Holds() bool  { return t.Leadership.Holds(0) }
func (t *ourTenure) Cause() error { return t.Err() }

// Guarded takes the library at its word: an error that does not say "unknown" means that
// nothing was done.
func (t *ourTenure) Guarded(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	resp, err := t.Txn(ctx).Then(op).Commit()
	switch {
	case err == nil:
		return resp, nil
	case errors.Is(err, eldest.ErrOutcomeUnknown):
		return nil, fmt.Errorf("%w: %w", errUnclear, err)
	default:
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
}

func (t *ourTenure) Late(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	return compareAndDo(ctx, t.client, t.Guard().Compare(), op)
}
