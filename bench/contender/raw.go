package contender

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var (
	errEnded    = errors.New("the watch has ended")
	errResigned = errors.New("resigned")
	errLost     = errors.New("the client has given the lease up")
)

// raw is a contender that uses etcd's requests directly.
type raw struct {
	name string
	// wait blocks until the candidate, which is registered, leads; ahead is the nearest older key.
	// prepare, which may be nil, is called before the registration.
	prepare func(ctx context.Context, c *rawCandidate) error
	wait    func(ctx context.Context, c *rawCandidate, ahead string) error
	// sight is nil if it is not supported.
	sight func(client *clientv3.Client, election string) Sight
	// bare means that users are not notified of a loss, and that writes are not guarded.
	bare bool
}

func (r raw) Name() string { return r.name }

func (r raw) Sight(_ context.Context, client *clientv3.Client, election string) (Sight, error) {
	if r.sight == nil {
		return nil, fmt.Errorf("%s has no observers: %w", r.name, errors.ErrUnsupported)
	}
	return r.sight(client, election), nil
}

// Open starts a session that etcd's client keeps alive.
func (r raw) Open(ctx context.Context, client *clientv3.Client, ttl time.Duration) (Session, error) {
	granted, err := client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return nil, err
	}
	alive, stop := context.WithCancel(context.Background())
	replies, err := client.KeepAlive(alive, granted.ID)
	if err != nil {
		stop()
		return nil, err
	}
	live, lost := context.WithCancelCause(context.Background())
	s := &rawSession{of: r, client: client, lease: granted.ID, live: live, stop: stop, over: make(chan struct{})}
	go func() {
		defer close(s.over)
		for range replies {
			continue // the client reads the TTL itself
		}
		lost(errLost)
	}()
	return s, nil
}

type rawSession struct {
	of     raw
	client *clientv3.Client
	lease  clientv3.LeaseID
	// live ends when the client has stopped renewing the lease, or stop was called; over is closed
	// then.
	live context.Context
	stop context.CancelFunc
	over chan struct{}
}

func (s *rawSession) Lease() clientv3.LeaseID { return s.lease }
func (s *rawSession) Usable() bool            { return s.live.Err() == nil }

// Candidate uses the same keys as etcd's own elections.
func (s *rawSession) Candidate(election, value string) (Candidate, error) {
	return &rawCandidate{rawSession: s, election: election, key: fmt.Sprintf("%s/%x", election, s.lease), value: value}, nil
}

func (s *rawSession) Close(ctx context.Context) error {
	s.Abandon()
	_, err := s.client.Revoke(ctx, s.lease)
	return err
}

func (s *rawSession) Abandon() {
	s.stop()
	<-s.over
}

type rawCandidate struct {
	*rawSession
	election, key, value string
	feed                 watchFeed // for herd only
}

func (c *rawCandidate) Campaign(ctx context.Context) (Tenure, error) {
	live, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.of.prepare != nil {
		if err := c.of.prepare(live, c); err != nil {
			return nil, err
		}
	}
	resp, err := c.client.Txn(ctx).Then(
		clientv3.OpPut(c.key, c.value, clientv3.WithLease(c.lease)),
		clientv3.OpGet(c.election+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend), clientv3.WithLimit(2)),
	).Commit()
	if err != nil {
		return nil, err
	}
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		if kv.CreateRevision < resp.Header.Revision {
			if err := c.of.wait(live, c, string(kv.Key)); err != nil {
				return nil, err
			}
		}
	}
	t := newTenure(c.live, c.rawSession, c.client, c.key, resp.Header.Revision, func(ctx context.Context) error {
		_, err := c.client.Delete(ctx, c.key)
		return err
	})
	if c.of.bare {
		return bareTenure{t}, nil
	}
	return t, nil
}

// tenure is the tenure of a contender whose package has no type for one. It ends with the session,
// or by Resign.
type tenure struct {
	session Session
	client  *clientv3.Client
	key     string
	token   int64
	ctx     context.Context
	end     context.CancelCauseFunc
	resign  func(context.Context) error
}

// newTenure makes a tenure that ends with live, the session's context, at the latest.
func newTenure(live context.Context, s Session, client *clientv3.Client, key string, token int64, resign func(context.Context) error) *tenure {
	t := &tenure{session: s, client: client, key: key, token: token, resign: resign}
	t.ctx, t.end = context.WithCancelCause(live)
	return t
}

func (t *tenure) Key() string              { return t.key }
func (t *tenure) Token() int64             { return t.token }
func (t *tenure) Holds() bool              { return t.session.Usable() && t.ctx.Err() == nil }
func (t *tenure) Context() context.Context { return t.ctx }

func (t *tenure) Do(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	return Guarded(ctx, t.client, t.key, t.token, op)
}

func (t *tenure) Resign(ctx context.Context) error {
	t.end(errResigned)
	return t.resign(ctx)
}

type bareTenure struct{ *tenure }

// Context never ends.
func (bareTenure) Context() context.Context { return context.Background() }

func (t bareTenure) Do(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	return t.client.Txn(ctx).Then(op).Commit()
}
