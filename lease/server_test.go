package lease_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/past"
	"github.com/eldest-io/eldest/lease"
)

const leaseID clientv3.LeaseID = 0x2a

// server is a lease server with scripted replies: for each method one reply after another, the last
// one repeatedly. A method that a session must not call panics.
type server struct {
	clientv3.Lease
	lease.Unconfirmed

	grant, renew, revoke []reply

	begun time.Time
	mu    sync.Mutex
	sent  []request
}

// request is a request that a session sent.
type request struct {
	method  string
	at      time.Duration // since the server was made
	id      clientv3.LeaseID
	ttl     int64
	timeout time.Duration // of its context; 0: none
}

// reply answers one request with a TTL or an error.
type reply func(ctx context.Context) (ttl int64, err error)

// newServer returns a server that grants and renews ten seconds, and revokes. It is another etcd than the
// one before, in which no lease has been revoked.
func newServer() *server {
	past.Forget(int64(leaseID))
	return &server{grant: []reply{ok(10)}, renew: []reply{ok(10)}, revoke: []reply{ok(0)}, begun: time.Now()}
}

// play runs a test with a server, in virtual time.
func play(t *testing.T, f func(t *testing.T, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newServer()) })
}

func (s *server) answer(ctx context.Context, r request, script []reply) (int64, error) {
	s.mu.Lock()
	r.at = time.Since(s.begun)
	if end, ok := ctx.Deadline(); ok {
		r.timeout = time.Until(end)
	}
	n := 0
	for _, before := range s.sent {
		if before.method == r.method {
			n++
		}
	}
	s.sent = append(s.sent, r)
	s.mu.Unlock()
	if len(script) == 0 {
		panic("no reply to " + r.method + " was planned")
	}
	return script[min(n, len(script)-1)](ctx)
}

func (s *server) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	granted, err := s.answer(ctx, request{method: "grant", ttl: ttl}, s.grant)
	if err != nil {
		return nil, err
	}
	return &clientv3.LeaseGrantResponse{ID: leaseID, TTL: granted}, nil
}

func (s *server) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	granted, err := s.answer(ctx, request{method: "renew", id: id}, s.renew)
	if err != nil {
		return nil, err
	}
	return &clientv3.LeaseKeepAliveResponse{ID: id, TTL: granted}, nil
}

func (s *server) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	if _, err := s.answer(ctx, request{method: "revoke", id: id}, s.revoke); err != nil {
		return nil, err
	}
	return &clientv3.LeaseRevokeResponse{}, nil
}

// requests returns what was sent so far by the given method.
func (s *server) requests(method string) []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.sent), func(r request) bool { return r.method != method })
}

// methods returns how often each method was used.
func (s *server) methods() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := make(map[string]int)
	for _, r := range s.sent {
		n[r.method]++
	}
	return n
}

// ok replies at once.
func ok(ttl int64) reply { return func(context.Context) (int64, error) { return ttl, nil } }

// fail refuses at once.
func fail(err error) reply { return func(context.Context) (int64, error) { return 0, err } }

// hole never replies.
func hole(ctx context.Context) (int64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// late gives another reply after d, unless the context ends before that.
func late(d time.Duration, then reply) reply {
	return func(ctx context.Context) (int64, error) {
		select {
		case <-time.After(d):
			return then(ctx)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// config returns a config for that server with exact pauses after failures.
func (s *server) config(ttl time.Duration) lease.Config {
	return lease.Config{
		Lease: way(s),
		Options: lease.Options{
			TTL: ttl, Clock: lease.Monotonic(),
			Backoff: func(int) time.Duration { return 100 * time.Millisecond },
		},
	}
}

// open opens a session and requires success.
func open(t *testing.T, cfg lease.Config) *lease.Session {
	t.Helper()
	s, err := lease.Open(t.Context(), cfg)
	require.NoError(t, err)
	return s
}

// record records the hook calls of a session.
type record struct {
	mu     sync.Mutex
	events []event
}

// event is one call of a hook.
type event struct {
	hook      string
	at        time.Duration
	remaining time.Duration
	renewed   lease.RenewedEvent
	err       error
}

// hooks returns hooks that record their calls, with times since now.
func (r *record) hooks() lease.Hooks {
	begun := time.Now()
	add := func(e event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		e.at = time.Since(begun)
		r.events = append(r.events, e)
	}
	return lease.Hooks{
		Renewed:   func(e lease.RenewedEvent) { add(event{hook: "renewed", renewed: e}) },
		AtRisk:    func(e lease.AtRiskEvent) { add(event{hook: "at-risk", remaining: e.Remaining, err: e.Err}) },
		Recovered: func(e lease.RenewedEvent) { add(event{hook: "recovered", renewed: e}) },
		Lost:      func(e lease.LostEvent) { add(event{hook: "lost", err: e.Cause}) },
	}
}

func (r *record) all() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *record) names() []string {
	names := []string{}
	for _, e := range r.all() {
		names = append(names, e.hook)
	}
	return names
}
