package contender

import (
	"context"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	etcds "go.etcd.io/etcd/client/v3/concurrency"

	ours "github.com/eldest-io/eldest/compat/concurrency"
)

// concurrency is etcd's own package.
//
// On the wire: one transaction registers; one linearizable range finds the predecessor; one watch
// on the predecessor, from the revision of that answer; when the predecessor is deleted, another
// such range. Each observer sends a range and opens a watch at every change.
var concurrency = api{Concurrency, func(client *clientv3.Client, seconds int, life context.Context) (apiSession, newElection, error) {
	s, err := etcds.NewSession(client, etcds.WithTTL(seconds), etcds.WithContext(life))
	return s, func(name string) apiElection { return observable(etcds.NewElection(s, name)) }, err
}}

// dropIn is this project's package with the API of etcd's.
var dropIn = api{DropIn, func(client *clientv3.Client, seconds int, life context.Context) (apiSession, newElection, error) {
	s, err := ours.NewSession(client, ours.WithTTL(seconds), ours.WithContext(life))
	return s, func(name string) apiElection { return observable(ours.NewElection(s, name)) }, err
}}

// api is a package with the API of etcd's concurrency package, used as its documentation describes:
// a session with a TTL, a campaign, leadership until the session is done.
type api struct {
	name string
	// open makes a session whose requests end with life, and makes elections on it.
	open func(client *clientv3.Client, seconds int, life context.Context) (apiSession, newElection, error)
}

type newElection func(name string) apiElection

type apiSession interface {
	Lease() clientv3.LeaseID
	Ctx() context.Context
	Orphan()
	Close() error
}

type apiElection struct {
	apiCampaign
	feed func(ctx context.Context) Feed
}

type apiCampaign interface {
	Campaign(ctx context.Context, value string) error
	Key() string
	Rev() int64
	Resign(ctx context.Context) error
}

// observable adapts Observe, whose channel has pointers, or values in etcd's package before 3.7.
func observable[R any](e interface {
	apiCampaign
	Observe(ctx context.Context) <-chan R
}) apiElection {
	return apiElection{e, func(ctx context.Context) Feed { return apiFeed[R](e.Observe(ctx)) }}
}

func (a api) Name() string { return a.name }

func (a api) Open(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Session, error) {
	return a.session(ctx, client, ttl)
}

// session opens a session. The packages keep the context for the session's life; ctx bounds only
// the opening.
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

// Sight opens a session only because the package requires one; it uses only the session's client.
func (a api) Sight(ctx context.Context, client *clientv3.Client, name string) (Sight, error) {
	s, err := a.session(ctx, client, time.Minute)
	if err != nil {
		return nil, err
	}
	live, cancel := context.WithCancel(context.Background())
	return apiSight{s, s.newElection(name), live, cancel}, nil
}

type apiOpen struct {
	apiSession
	newElection
	client *clientv3.Client
	end    context.CancelFunc
	// stale means that a resignation has failed: the key may still exist, and another campaign
	// would find it and win at once, with an old token.
	stale atomic.Bool
}

func (s *apiOpen) Usable() bool { return !s.stale.Load() && s.Ctx().Err() == nil }

func (s *apiOpen) Candidate(election, value string) (Candidate, error) {
	return apiCandidate{s, s.newElection(election), value}, nil
}

// Close calls the package's Close, whose timeout is the TTL, but ends with ctx at the latest.
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

// Campaign ends with the session, as in users' programs: leadership without a session is useless.
// This does not help if the lease has expired and the client has not noticed.
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
	return s.election.feed(s.live), nil
}

func (s apiSight) Close(ctx context.Context) {
	s.cancel()
	_ = s.session.Close(ctx) // on an error its lease expires
}

type apiFeed[R any] <-chan R

func (f apiFeed[R]) Next(ctx context.Context) (Leader, error) {
	select {
	case resp, ok := <-f:
		if !ok {
			return Leader{}, errEnded
		}
		value, ok := any(&resp).(*clientv3.GetResponse)
		if !ok {
			value = any(resp).(*clientv3.GetResponse)
		}
		return leaderOf(value), nil
	case <-ctx.Done():
		return Leader{}, context.Cause(ctx)
	}
}
