package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/lease"
)

// openers are Open and Resume, each on a server with the given script for it.
var openers = map[string]func(ctx context.Context, s *server, script ...reply) (*lease.Session, error){
	"open session": func(ctx context.Context, s *server, script ...reply) (*lease.Session, error) {
		s.grant = script
		return lease.Open(ctx, s.config(10*time.Second))
	},
	"resume session": func(ctx context.Context, s *server, script ...reply) (*lease.Session, error) {
		s.renew = script
		return lease.Resume(ctx, s.config(0), leaseID)
	},
}

// eachOpener runs a test for both openers, in virtual time.
func eachOpener(t *testing.T, f func(t *testing.T, op string, open func(context.Context, *server, ...reply) (*lease.Session, error))) {
	for op, open := range openers {
		t.Run(op, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, op, open) }) })
	}
}

// sentAny returns all requests that were sent.
func (s *server) sentAny() []request { return append(s.requests("grant"), s.requests("renew")...) }

// TestRegression8EtcdDown: while etcd is unavailable the attempt is repeated, with back-off, until
// the context ends, and the error has both the context's cause and etcd's error.
func TestRegression8EtcdDown(t *testing.T) {
	eachOpener(t, func(t *testing.T, op string, open func(context.Context, *server, ...reply) (*lease.Session, error)) {
		s := newServer()
		down := status.Error(codes.Unavailable, "connection refused")
		_, err := open(etcdtest.ContextFor(t, 10*time.Second+50*time.Millisecond), s, fail(down))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "eldest: "+op)
		require.ErrorContains(t, err, "connection refused")
		require.Equal(t, 10*time.Second+50*time.Millisecond, time.Since(s.begun))
		require.Len(t, s.sentAny(), 101)
	})
}

// TestOpenAgainstABlackHole: Open never hangs; each attempt has a time-out of its own.
func TestOpenAgainstABlackHole(t *testing.T) {
	eachOpener(t, func(t *testing.T, _ string, open func(context.Context, *server, ...reply) (*lease.Session, error)) {
		s := newServer()
		cause := errors.New("enough waiting")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(7*time.Second, func() { cancel(cause) })
		require.ErrorIs(t, etcdtest.Err(open(ctx, s, hole)), cause)
		require.Equal(t, 7*time.Second, time.Since(s.begun), "Open ended later than its context")
		require.Len(t, s.sentAny(), 4)
		for _, r := range s.sentAny() {
			require.Equal(t, 2*time.Second, r.timeout)
		}
	})
}

func TestOpenAfterFailures(t *testing.T) {
	eachOpener(t, func(t *testing.T, _ string, open func(context.Context, *server, ...reply) (*lease.Session, error)) {
		s := newServer()
		session, err := open(t.Context(), s, hole, fail(rpctypes.ErrTooManyRequests), fail(rpctypes.ErrTimeoutDueToLeaderFail),
			fail(rpctypes.ErrInvalidAuthToken), fail(errAway), ok(7))
		require.NoError(t, err)
		require.Equal(t, 7*time.Second, session.TTL())
		require.Equal(t, leaseID, session.ID())
		require.Len(t, s.sentAny(), 6)
		require.Equal(t, 2*time.Second+5*100*time.Millisecond, time.Since(s.begun))
		session.Abandon()
	})
}

// TestOpenRefusedForGood: a permanent refusal is returned at once, with the server's error.
func TestOpenRefusedForGood(t *testing.T) {
	eachOpener(t, func(t *testing.T, op string, open func(context.Context, *server, ...reply) (*lease.Session, error)) {
		for _, refusal := range []error{rpctypes.ErrPermissionDenied, rpctypes.ErrNoSpace, rpctypes.ErrLeaseTTLTooLarge, rpctypes.ErrAuthFailed} {
			s := newServer()
			_, err := open(t.Context(), s, fail(refusal))
			require.ErrorIs(t, err, refusal)
			var oe *eldest.OpError
			require.ErrorAs(t, err, &oe)
			require.Equal(t, op, oe.Op)
			require.Len(t, s.sentAny(), 1)
			require.Zero(t, time.Since(s.begun))
		}
	})
}

func TestOpenOnAClosedClient(t *testing.T) {
	eachOpener(t, func(t *testing.T, _ string, open func(context.Context, *server, ...reply) (*lease.Session, error)) {
		s := newServer()
		_, err := open(t.Context(), s, fail(status.Error(codes.Canceled, "grpc: the client connection is closing")))
		require.ErrorIs(t, err, eldest.ErrClosed)
		require.ErrorContains(t, err, "the client connection is closing")
		require.Len(t, s.sentAny(), 1)
	})
}

func TestOpenWithADeadContext(t *testing.T) {
	eachOpener(t, func(t *testing.T, _ string, open func(context.Context, *server, ...reply) (*lease.Session, error)) {
		s := newServer()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := open(ctx, s, hole)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, eldest.ErrClosed, "the caller's own context is not the client's end")
		require.Zero(t, time.Since(s.begun))
	})
}

// TestAnswerThatComesTooLate: a reply that was on its way for longer than its lease is certain
// starts no session, and the request is repeated.
func TestAnswerThatComesTooLate(t *testing.T) {
	eachOpener(t, func(t *testing.T, _ string, open func(context.Context, *server, ...reply) (*lease.Session, error)) {
		s := newServer()
		session, err := open(t.Context(), s, late(1800*time.Millisecond, ok(2)), late(1799*time.Millisecond, ok(2)))
		require.NoError(t, err)
		require.Len(t, s.sentAny(), 2)
		require.Equal(t, time.Millisecond, session.Status().Remaining)
		session.Abandon()
	})
}

// TestServerGrantsNothing: etcd itself accepts TTLs that are too short for any session.
func TestServerGrantsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, granted := range []int64{0, -1} {
			s := newServer()
			s.grant = []reply{ok(granted)}
			require.ErrorContains(t, etcdtest.Err(lease.Open(t.Context(), s.config(0))), "the server granted")
			require.Len(t, s.requests("grant"), 1)
		}
	})
}

// TestRegression19Resume: a live lease is taken over with its own TTL, counted from the renewal;
// for a lease that no longer exists Resume fails at once.
func TestRegression19Resume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.renew, s.revoke = []reply{late(time.Second, ok(30))}, []reply{ok(0)}
		session, err := lease.Resume(t.Context(), s.config(5*time.Second), leaseID)
		require.NoError(t, err)
		require.Equal(t, leaseID, session.ID())
		require.Equal(t, 30*time.Second, session.TTL(), "the lease has a TTL of its own")
		require.Equal(t, 26*time.Second, session.Status().Remaining)
		require.NoError(t, session.Close(t.Context()))
		require.Equal(t, map[string]int{"renew": 1, "revoke": 1}, s.methods())

		for _, gone := range []reply{ok(0), fail(rpctypes.ErrLeaseNotFound), fail(rpctypes.ErrGRPCLeaseNotFound)} {
			s = newServer()
			s.renew = []reply{gone}
			_, err = lease.Resume(t.Context(), s.config(0), leaseID)
			require.ErrorIs(t, err, eldest.ErrSessionLost)
			require.ErrorContains(t, err, "eldest: resume session lease 2a: session lost: the server replied that the lease does not exist")
			require.Len(t, s.requests("renew"), 1)
		}
	})
}

// TestRegression28DefaultBackoff: while etcd is unavailable a session sends a few requests in the
// first second, and about one a second for an hour.
func TestRegression28DefaultBackoff(t *testing.T) {
	eachOpener(t, func(t *testing.T, op string, _ func(context.Context, *server, ...reply) (*lease.Session, error)) {
		if op != "open session" {
			return
		}
		for length, most := range map[time.Duration]int{time.Second: 8, time.Hour: 7300} {
			s := newServer()
			s.grant = []reply{fail(errAway)}
			cfg := s.config(0)
			cfg.Backoff = retry.Default()
			require.ErrorIs(t, etcdtest.Err(lease.Open(etcdtest.ContextFor(t, length), cfg)), context.DeadlineExceeded)
			require.LessOrEqual(t, len(s.requests("grant")), most)
			require.GreaterOrEqual(t, len(s.requests("grant")), 4)
		}
	})
}
