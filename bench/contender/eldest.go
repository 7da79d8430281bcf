package contender

import (
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

func init() { register(ours{}) }

// ours is this project, with its defaults.
//
// On the wire: one transaction registers and says who is ahead; one watch on the
// predecessor; when that is gone, one read, pinned at the revision of the deletion and
// answered by the asked member itself, proves the win. Observers of one process share
// one watch and ask nothing when the leader changes.
type ours struct{}

func (ours) Name() string { return "eldest" }

func (ours) Open(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Session, error) {
	s, err := lease.Open(ctx, lease.Config{Lease: client, TTL: ttl})
	if err != nil {
		return nil, err
	}
	return &ourSession{client: client, session: s}, nil
}

func (ours) Sight(_ context.Context, client *clientv3.Client, name string) (Sight, error) {
	o, err := observe.New(observe.Config{Election: name, KV: client, Watcher: client})
	if err != nil {
		return nil, err
	}
	return ourSight{o}, nil
}

type ourSession struct {
	client  *clientv3.Client
	session *lease.Session

	mu         sync.Mutex
	candidates []*election.Candidate
}

func (s *ourSession) Candidate(name, value string) (Candidate, error) {
	c, err := election.New(election.Config{
		Election: name, Session: s.session, KV: s.client, Watcher: s.client, Value: []byte(value),
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.candidates = append(s.candidates, c)
	return &ourCandidate{Candidate: c, lease: s.session.ID()}, nil
}

// Close revokes the lease, which takes the keys along, and then ends the candidates,
// which have nothing left to remove. Where etcd does not confirm that in time, no further
// attempts are made in the background: the run may be over, and its client with it.
func (s *ourSession) Close(ctx context.Context) error {
	err := s.session.Close(ctx)
	if err != nil {
		s.session.Abandon()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.candidates {
		err = errors.Join(err, c.Close(ctx))
	}
	return err
}

type ourCandidate struct {
	*election.Candidate
	lease clientv3.LeaseID
	leads *election.Leadership
}

func (c *ourCandidate) Campaign(ctx context.Context) (time.Time, error) {
	l, err := c.Candidate.Campaign(ctx)
	won := time.Now()
	c.leads = l
	return won, err
}

func (c *ourCandidate) Resign(ctx context.Context) error { return c.leads.Resign(ctx) }

func (c *ourCandidate) Lost() <-chan time.Time { return once(c.leads.Done()) }

func (c *ourCandidate) Put(ctx context.Context, key, value string) error {
	_, err := c.leads.Txn(ctx).Then(clientv3.OpPut(key, value, clientv3.WithLease(c.lease))).Commit()
	return err
}

type ourSight struct{ observer *observe.Observer }

func (s ourSight) Feed(context.Context) (Feed, error) { return ourFeed{s.observer.Subscribe()}, nil }

func (s ourSight) Close(context.Context) { s.observer.Close() }

type ourFeed struct{ *observe.Subscription }

func (f ourFeed) Next(ctx context.Context) (string, error) {
	state, err := f.Subscription.Next(ctx)
	return state.Leader.Key, err
}
