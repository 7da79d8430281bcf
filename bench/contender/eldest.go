package contender

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// Ours is this project. The zero value has the project's defaults and is the one that is measured;
// programs that test it under faults change it by the fields, each of which may be nil.
//
// On the wire: one transaction registers and returns the predecessor; one watch on the predecessor;
// when it is deleted, one serializable read at the revision of the deletion proves the win.
// Observers of one process share one watch and send no request when the leader changes.
type Ours struct {
	// Lease and Election alter the configs of sessions and candidates.
	Lease    func(*lease.Config)
	Election func(*election.Config)
	// Made is called with each candidate and its session.
	Made func(*election.Candidate, *lease.Session)
	// Registered makes candidates campaign in two calls, and is called between them, when the
	// candidate is queued and does not wait yet.
	Registered func(election.Position)
}

// Name is Eldest.
func (Ours) Name() string { return Eldest }

// Open opens a lease.Session.
func (o Ours) Open(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Session, error) {
	cfg := lease.Config{Lease: client, Options: lease.Options{TTL: ttl}}
	if o.Lease != nil {
		o.Lease(&cfg)
	}
	s, err := lease.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &ourSession{of: o, client: client, session: s}, nil
}

// Sight makes an observe.Observer.
func (Ours) Sight(_ context.Context, client *clientv3.Client, name string) (Sight, error) {
	o, err := observe.New(observe.Config{Election: name, KV: client, Watcher: client})
	if err != nil {
		return nil, err
	}
	return ourSight{o}, nil
}

type ourSession struct {
	of      Ours
	client  *clientv3.Client
	session *lease.Session

	mu         sync.Mutex
	candidates []*election.Candidate
}

func (s *ourSession) Lease() clientv3.LeaseID { return s.session.ID() }
func (s *ourSession) Usable() bool            { return s.session.Err() == nil }

func (s *ourSession) Candidate(name, value string) (Candidate, error) {
	cfg := election.Config{Election: name, Session: s.session, KV: s.client, Watcher: s.client, Value: []byte(value)}
	if s.of.Election != nil {
		s.of.Election(&cfg)
	}
	c, err := election.New(cfg)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.candidates = append(s.candidates, c)
	s.mu.Unlock()
	if s.of.Made != nil {
		s.of.Made(c, s.session)
	}
	return ourCandidate{c, s.of.Registered}, nil
}

func (s *ourSession) Close(ctx context.Context) error {
	return errors.Join(s.closeCandidates(ctx), s.session.Close(ctx))
}

func (s *ourSession) Abandon() {
	s.session.Abandon()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.closeCandidates(over) // nothing is sent under a context that has ended
}

// closeCandidates closes all candidates in parallel: each may send a request.
func (s *ourSession) closeCandidates(ctx context.Context) error {
	s.mu.Lock()
	candidates := slices.Clone(s.candidates)
	s.mu.Unlock()
	errs := make([]error, len(candidates))
	var all sync.WaitGroup
	for i, c := range candidates {
		all.Go(func() { errs[i] = c.Close(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// ourCandidate has the candidate's Withdraw, and a method that resumes a suspended tenure.
type ourCandidate struct {
	*election.Candidate
	registered func(election.Position)
}

func (c ourCandidate) Campaign(ctx context.Context) (Tenure, error) {
	if c.registered == nil {
		return tenureOf(c.Candidate.Campaign(ctx))
	}
	at, err := c.Register(ctx)
	if err != nil {
		return nil, err
	}
	c.registered(at)
	return tenureOf(c.Await(ctx))
}

func tenureOf(l *election.Leadership, err error) (Tenure, error) {
	switch {
	case (l == nil) == (err == nil):
		return nil, fmt.Errorf("campaign returned %v and %w", l, err)
	case err != nil:
		return nil, err
	}
	return ourTenure{l}, nil
}

// Resume resumes the leadership after the tenure was suspended, in the way in which the candidate
// campaigns. It returns eldest.ErrNotRegistered if the candidate is not registered any more.
func (c ourCandidate) Resume(ctx context.Context) (Tenure, error) {
	if c.Status().Token == 0 {
		return nil, eldest.ErrNotRegistered
	}
	if c.registered != nil {
		return tenureOf(c.Await(ctx))
	}
	return tenureOf(c.Candidate.Campaign(ctx))
}

type ourTenure struct{ *election.Leadership }

func (t ourTenure) Token() int64 { return int64(t.Leadership.Token()) }
func (t ourTenure) Holds() bool  { return t.Leadership.Holds(0) }

// Do relies on the library's documentation: an error that does not wrap ErrOutcomeUnknown means
// that nothing was done.
func (t ourTenure) Do(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	resp, err := t.Txn(ctx).Then(op).Commit()
	if err != nil && !errors.Is(err, eldest.ErrOutcomeUnknown) {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return resp, err
}

type ourSight struct{ observer *observe.Observer }

func (s ourSight) Feed(context.Context) (Feed, error) { return ourFeed{s.observer.Subscribe()}, nil }

func (s ourSight) Close(context.Context) { s.observer.Close() }

type ourFeed struct{ *observe.Subscription }

func (f ourFeed) Next(ctx context.Context) (Leader, error) {
	state, err := f.Subscription.Next(ctx)
	return Leader{state.Leader.Key, string(state.Leader.Value)}, err
}
