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
var openers = map[string]func(ctx context.Context, s *server, script []reply) (*lease.Session, error){
	"open session": func(ctx context.Context, s *server, script []reply) (*lease.Session, error) {
		s.grant = script
		return lease.Open(ctx, s.config(10*time.Second))
	},
	"resume session": func(ctx context.Context, s *server, script []reply) (*lease.Session, error) {
		s.renew = script
		return lease.Resume(ctx, s.config(0), leaseID)
	},
}

// TestOpenAfterFailures: while etcd is unavailable Open and Resume repeat the attempt, with back-off
// and a time-out for each, until the context ends. A permanent refusal ends them at once, and so does
// a closed client. An answer that was on its way for longer than its lease is certain starts no
// session.
func TestOpenAfterFailures(t *testing.T) {
	const ms = time.Millisecond
	enough := errors.New("enough waiting")
	down := status.Error(codes.Unavailable, "connection refused")
	closing := status.Error(codes.Canceled, "grpc: the client connection is closing")
	for name, tc := range map[string]struct {
		script  []reply
		limit   time.Duration // of the context
		reasons []error       // of the failure; nil: there is a session
		left    time.Duration // of the session
		sent    int
		took    time.Duration
	}{
		"down":          {[]reply{fail(down)}, 10*time.Second + 50*ms, []error{enough, down}, 0, 101, 10*time.Second + 50*ms},
		"black hole":    {[]reply{hole}, 7 * time.Second, []error{enough}, 0, 4, 7 * time.Second},
		"dead context":  {[]reply{hole}, 0, []error{enough}, 0, 0, 0},
		"permission":    {[]reply{fail(rpctypes.ErrPermissionDenied)}, time.Hour, []error{rpctypes.ErrPermissionDenied}, 0, 1, 0},
		"no space":      {[]reply{fail(rpctypes.ErrNoSpace)}, time.Hour, []error{rpctypes.ErrNoSpace}, 0, 1, 0},
		"TTL too large": {[]reply{fail(rpctypes.ErrLeaseTTLTooLarge)}, time.Hour, []error{rpctypes.ErrLeaseTTLTooLarge}, 0, 1, 0},
		"wrong login":   {[]reply{fail(rpctypes.ErrAuthFailed)}, time.Hour, []error{rpctypes.ErrAuthFailed}, 0, 1, 0},
		"closed client": {[]reply{fail(closing)}, time.Hour, []error{eldest.ErrClosed, closing}, 0, 1, 0},
		"recovers": {[]reply{
			hole, fail(rpctypes.ErrTooManyRequests), fail(rpctypes.ErrTimeoutDueToLeaderFail), fail(rpctypes.ErrInvalidAuthToken), fail(errAway), ok(7),
		}, time.Hour, nil, 6300 * ms, 6, 2500 * ms},
		"answers late": {[]reply{late(1800*ms, ok(2)), late(1799*ms, ok(2))}, time.Hour, nil, ms, 2, 3699 * ms},
	} {
		for op, open := range openers {
			t.Run(op+" "+name, func(t *testing.T) {
				play(t, func(t *testing.T, s *server) {
					ctx, cancel := context.WithTimeoutCause(t.Context(), tc.limit, enough)
					defer cancel()
					session, err := open(ctx, s, tc.script)
					require.Equal(t, tc.took, time.Since(s.begun))
					sent := append(s.requests("grant"), s.requests("renew")...)
					if name == "answers late" && len(sent) > tc.sent {
						sent = sent[:tc.sent] // the first renewal is due at once, and may be on its way
					}
					require.Len(t, sent, tc.sent)
					for _, r := range sent {
						require.LessOrEqual(t, r.timeout, 2*time.Second)
						require.Positive(t, r.timeout)
					}
					if tc.reasons == nil {
						require.NoError(t, err)
						require.Equal(t, leaseID, session.ID())
						require.Equal(t, tc.left, session.Status().Remaining)
						session.Abandon()
						return
					}
					var failed *eldest.OpError
					require.ErrorAs(t, err, &failed)
					require.Equal(t, op, failed.Op)
					for _, reason := range tc.reasons {
						require.ErrorIs(t, err, reason)
					}
					require.Equal(t, name == "closed client", errors.Is(err, eldest.ErrClosed))
				})
			})
		}
	}
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
	play(t, func(t *testing.T, s *server) {
		s.grant, s.renew = nil, []reply{late(time.Second, ok(30))}
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
	synctest.Test(t, func(t *testing.T) {
		for length, most := range map[time.Duration]int{time.Second: 8, time.Hour: 7300} {
			s := newServer()
			s.grant = []reply{fail(errAway)}
			cfg := s.config(0)
			cfg.Backoff = retry.Default()
			require.ErrorIs(t, etcdtest.Err(lease.Open(etcdtest.ContextFor(t, length), cfg)), context.DeadlineExceeded)
			require.LessOrEqual(t, len(s.sent), most)
			require.GreaterOrEqual(t, len(s.sent), 4)
		}
	})
}

// TestSlowGrant: a session whose lease was granted slowly renews it before the deadline, which counts
// from the sending.
//
// Fails if the first pause counts from the answer.
func TestSlowGrant(t *testing.T) {
	for name, open := range openers {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *server) {
				session, err := open(t.Context(), s, []reply{late(1500*time.Millisecond, ok(2)), ok(2)})
				require.NoError(t, err)
				defer session.Abandon()
				time.Sleep(10 * time.Second)
				require.NoError(t, session.Err())
			})
		})
	}
}

// TestSlowRenewals: a session whose renewals are answered slowly sends the next one before the deadline,
// which counts from the sending.
//
// Fails if the pause after a renewal counts from the answer.
func TestSlowRenewals(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.renew = []reply{late(3*time.Second, ok(10))}
		cfg := s.config(0)
		cfg.Renewal = func(granted time.Duration) lease.Renewal {
			return lease.Renewal{Every: granted / 2, Timeout: granted / 2}
		}
		session := open(t, cfg)
		defer session.Abandon()
		time.Sleep(10 * time.Minute)
		require.NoError(t, session.Err())
	})
}
