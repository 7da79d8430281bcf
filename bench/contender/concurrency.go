package contender

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func init() { register(theirs{}) }

// theirs is etcd's own package, as its documentation shows it.
//
// On the wire: one transaction registers; one range, asked of the quorum, finds who is
// ahead; one watch on the predecessor, from the revision of that answer; when it is
// gone, another such range. Each observer asks for a range and opens a watch at every
// change.
type theirs struct{}

func (theirs) Name() string { return "concurrency" }

func (theirs) Open(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Session, error) {
	// The lease is granted here, so that ctx bounds the grant only and not, as
	// WithContext would have it, the session.
	seconds := int64((ttl + time.Second - 1) / time.Second)
	granted, err := client.Grant(ctx, seconds)
	if err != nil {
		return nil, err
	}
	s, err := concurrency.NewSession(client, concurrency.WithLease(granted.ID), concurrency.WithTTL(int(seconds)))
	if err != nil {
		return nil, err
	}
	return theirSession{client: client, session: s}, nil
}

func (theirs) Sight(ctx context.Context, client *clientv3.Client, name string) (Sight, error) {
	// Observing needs no session, only the client that one carries.
	granted, err := client.Grant(ctx, sightTTL)
	if err != nil {
		return nil, err
	}
	live, cancel := context.WithCancel(context.Background())
	s, err := concurrency.NewSession(client, concurrency.WithLease(granted.ID), concurrency.WithTTL(sightTTL))
	if err != nil {
		cancel()
		return nil, err
	}
	return &theirSight{election: concurrency.NewElection(s, name), session: s, client: client, ctx: live, cancel: cancel}, nil
}

// sightTTL is that of the lease of observers, in seconds.
const sightTTL = 60

type theirSession struct {
	client  *clientv3.Client
	session *concurrency.Session
}

func (s theirSession) Candidate(name, value string) (Candidate, error) {
	return &theirCandidate{
		client: s.client, session: s.session, value: value,
		Election: concurrency.NewElection(s.session, name),
	}, nil
}

// Close is Session.Close with the caller's context: revoking with the session's own
// takes the TTL for its time-out.
func (s theirSession) Close(ctx context.Context) error {
	s.session.Orphan()
	_, err := s.client.Revoke(ctx, s.session.Lease())
	return err
}

type theirCandidate struct {
	*concurrency.Election
	client  *clientv3.Client
	session *concurrency.Session
	value   string
}

func (c *theirCandidate) Campaign(ctx context.Context) (time.Time, error) {
	err := c.Election.Campaign(ctx, c.value)
	return time.Now(), err
}

// Lost is when the session is done: the package has no other way to tell.
func (c *theirCandidate) Lost() <-chan time.Time { return once(c.session.Done()) }

// Put compares the leader's key, as users of the package do by hand.
func (c *theirCandidate) Put(ctx context.Context, key, value string) error {
	return putWhile(ctx, c.client, c.Key(), c.Rev(), clientv3.OpPut(key, value, clientv3.WithLease(c.session.Lease())))
}

type theirSight struct {
	election *concurrency.Election
	session  *concurrency.Session
	client   *clientv3.Client
	ctx      context.Context
	cancel   context.CancelFunc
}

func (s *theirSight) Feed(context.Context) (Feed, error) {
	return theirFeed(s.election.Observe(s.ctx)), nil
}

func (s *theirSight) Close(ctx context.Context) {
	s.cancel()
	s.session.Orphan()
	_, _ = s.client.Revoke(ctx, s.session.Lease()) // it goes by itself otherwise
}

type theirFeed <-chan *clientv3.GetResponse

func (f theirFeed) Next(ctx context.Context) (string, error) {
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
