package etcdpeer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// eldestCandidate is one campaign and its tenure: what elector.Run does in a round.
type eldestCandidate struct {
	client *eldestClient
	id     string
}

// Campaign opens a session of the candidate's own: a session has one key in an election.
func (c *eldestCandidate) Campaign(ctx context.Context, queued func()) (peer.Tenure, error) {
	cfg := lease.Config{Lease: c.client.etcd, Options: c.client.session}
	session, err := lease.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	t := &eldestTenure{client: c.client, session: session, over: make(chan struct{})}
	t.candidate, err = election.New(election.Config{
		Election: c.client.cfg.Election, Session: session, KV: c.client.etcd, Watcher: c.client.etcd, Value: []byte(c.id),
	})
	if err != nil {
		session.Abandon()
		return nil, err
	}
	if err := c.client.closing.add(t.close); err != nil {
		session.Abandon()
		return nil, err
	}
	if t.leadership, err = t.campaign(ctx, queued); err != nil {
		close(t.over)
		return nil, err
	}
	go t.resume(t.leadership)
	return t, nil
}

// eldestTenure is a tenure, with the session and the candidate that it needs.
type eldestTenure struct {
	client    *eldestClient
	session   *lease.Session
	candidate *election.Candidate
	// over is closed when the tenure has ended and will not be resumed.
	over chan struct{}

	mu sync.Mutex
	// leadership is the present one. After a suspension a new one has the same token.
	leadership *election.Leadership
}

// campaign registers the candidate and waits, in two calls, as elector.Run does.
func (t *eldestTenure) campaign(ctx context.Context, queued func()) (*election.Leadership, error) {
	position, err := t.candidate.Register(ctx)
	if err != nil {
		return nil, err
	}
	if position.Queue != 1 { // 0 means that the queue is long
		queued()
	}
	return t.candidate.Await(ctx)
}

// resume waits for the end of the tenure. A tenure that was suspended, because no heartbeat was acknowledged
// in time, continues when its key is proven to exist still; elector.Run does the same.
func (t *eldestTenure) resume(l *election.Leadership) {
	defer close(t.over)
	for {
		<-l.Done()
		if !errors.Is(l.Err(), eldest.ErrSuspended) {
			return
		}
		next, err := t.candidate.Await(context.Background()) // the end of the candidate or its session ends it
		if err != nil {
			return
		}
		l = next
		t.mu.Lock()
		t.leadership = l
		t.mu.Unlock()
	}
}

func (t *eldestTenure) current() *election.Leadership {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leadership
}

func (t *eldestTenure) Holds() bool { return t.current().Holds(0) }

// Append does not report an entry as refused while the tenure is suspended: it may continue.
func (t *eldestTenure) Append(ctx context.Context, entry string) error {
	_, err := t.current().Txn(ctx).Then(t.client.entry(entry)).Commit()
	switch {
	case err == nil, errors.Is(err, eldest.ErrOutcomeUnknown):
		return err
	case errors.Is(err, eldest.ErrSuspended) && !t.ended():
		return err
	case errors.Is(err, eldest.ErrNotLeading), errors.Is(err, eldest.ErrDeposed):
		return fmt.Errorf("%w: %w", peer.ErrRefused, err)
	default:
		return err
	}
}

func (t *eldestTenure) ended() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

func (t *eldestTenure) Resign(ctx context.Context) error {
	return errors.Join(t.current().Resign(ctx), t.close(ctx))
}

// close ends everything, and waits for it. If etcd does not confirm the revocation of the lease until ctx
// ends, the lease is left to expire.
func (t *eldestTenure) close(ctx context.Context) error {
	err := t.session.Close(ctx)
	if err != nil {
		t.session.Abandon()
	}
	// The session has ended: nothing is sent any more, and only work in this process is waited for.
	err = errors.Join(err, t.candidate.Close(context.WithoutCancel(ctx)))
	<-t.over
	return err
}
