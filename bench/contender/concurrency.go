package contender

import (
	"context"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// etcds is etcd's own package.
//
// On the wire: one transaction registers; one range, asked of the quorum, finds who is
// ahead; one watch on the predecessor, from the revision of that answer; when it is
// gone, another such range. Each observer asks for a range and opens a watch at every
// change.
var etcds = api{Concurrency, func(client *clientv3.Client, seconds int, life context.Context) (apiSession, newElection, error) {
	s, err := concurrency.NewSession(client, concurrency.WithTTL(seconds), concurrency.WithContext(life))
	return s, func(name string) apiElection { return concurrency.NewElection(s, name) }, err
}}

// api is a package with the API of etcd's concurrency package, used as that is documented:
// a session with a TTL, a campaign, leadership until the session is done.
type api struct {
	name string
	// open makes a session whose requests end with life, and makes elections on it.
	open func(client *clientv3.Client, seconds int, life context.Context) (apiSession, newElection, error)
}

type newElection func(name string) apiElection

// apiSession and apiElection are what is used of the API.
type apiSession interface {
	Lease() clientv3.LeaseID
	Ctx() context.Context
	Done() <-chan struct{}
	Orphan()
	Close() error
}

type apiElection interface {
	Campaign(ctx context.Context, value string) error
	Key() string
	Rev() int64
	Resign(ctx context.Context) error
	Observe(ctx context.Context) <-chan *clientv3.GetResponse
}

func (a api) Name() string { return a.name }

func (a api) Open(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Session, error) {
	return a.session(ctx, client, ttl)
}

// session opens a session. The packages keep the context for its life; ctx bounds only the
// opening.
func (a api) session(ctx context.Context, client *clientv3.Client, ttl time.Duration) (*apiOpen, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	s, newElection, err := a.open(client, int((ttl+time.Second-1)/time.Second), life)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		return nil, err
	}
	return &apiOpen{apiSession: s, newElection: newElection, client: client, end: end}, nil
}

// Sight needs no session, only the client that one carries.
func (a api) Sight(ctx context.Context, client *clientv3.Client, name string) (Sight, error) {
	s, err := a.session(ctx, client, time.Minute)
	if err != nil {
		return nil, err
	}
	live, cancel := context.WithCancel(context.Background())
	return apiSight{s, s.newElection(name), live, cancel}, nil
}

// apiOpen is an open session.
type apiOpen struct {
	apiSession
	newElection
	client *clientv3.Client
	end    context.CancelFunc
	// stale says that a resignation has failed: the key may be there still, and another
	// campaign would find it and win at once, with a token of the past.
	stale atomic.Bool
}

func (s *apiOpen) Usable() bool { return !s.stale.Load() && !closed(s.Done()) }

func (s *apiOpen) Candidate(election, value string) (Candidate, error) {
	return apiCandidate{s, s.newElection(election), value}, nil
}

// Close is that of the package, which takes the TTL for its time-out, until ctx ends.
func (s *apiOpen) Close(ctx context.Context) error {
	defer s.end()
	defer context.AfterFunc(ctx, s.end)()
	return s.apiSession.Close()
}

func (s *apiOpen) Abandon() {
	s.end()
	s.Orphan()
}

type apiCandidate struct {
	session  *apiOpen
	election apiElection
	value    string
}

// Campaign ends with the session, as users of the packages have it: without one leadership
// is worth nothing. It does not help where the lease is gone and the client has not noticed.
func (c apiCandidate) Campaign(ctx context.Context) (Tenure, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.session.Ctx(), cancel)()
	if err := c.election.Campaign(ctx, c.value); err != nil {
		return nil, err
	}
	return newTenure(c.session.Ctx(), c.session, c.session.client, c.election.Key(), c.election.Rev(), func(ctx context.Context) error {
		err := c.election.Resign(ctx)
		c.session.stale.Store(err != nil)
		return err
	}), nil
}

type apiSight struct {
	session  *apiOpen
	election apiElection
	live     context.Context
	cancel   context.CancelFunc
}

func (s apiSight) Feed(context.Context) (Feed, error) {
	return apiFeed(s.election.Observe(s.live)), nil
}

func (s apiSight) Close(ctx context.Context) {
	s.cancel()
	_ = s.session.Close(ctx) // at the latest its lease expires
}

type apiFeed <-chan *clientv3.GetResponse

func (f apiFeed) Next(ctx context.Context) (string, error) {
	select {
	case resp, ok := <-f:
		if !ok {
			return "", errEnded
		}
		return string(resp.Kvs[0].Key), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
