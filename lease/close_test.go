package lease_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/loop"
	"github.com/eldest-io/eldest/lease"
)

// TestCloseRevokes: the context ends first, then the revocation is sent, once.
func TestCloseRevokes(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		var session *lease.Session
		s.revoke = []reply{func(context.Context) (int64, error) {
			if session.Err() == nil {
				return 0, errors.New("revoked while the context lives")
			}
			return 0, nil
		}}
		opening, cancel := context.WithCancel(t.Context())
		var err error
		session, err = lease.Open(opening, s.config(0))
		require.NoError(t, err)
		cancel()
		time.Sleep(time.Minute)
		require.NoError(t, session.Err(), "the session ended with the context of its opening")

		require.NoError(t, session.Close(etcdtest.ContextFor(t, time.Second)))
		require.ErrorIs(t, session.Err(), eldest.ErrClosed)
		require.NotErrorIs(t, session.Err(), eldest.ErrSessionLost)
		require.ErrorContains(t, session.Err(), "eldest: session lease 2a: closed: the session was closed")
		require.Equal(t, leaseID, s.requests("revoke")[0].id)
		before := s.methods()
		require.Equal(t, 1, before["revoke"])

		for range 50 {
			require.NoError(t, session.Close(etcdtest.ContextFor(t, 0)), "a session that is closed is closed for everybody")
		}
		session.Abandon()
		time.Sleep(time.Hour)
		require.Equal(t, before, s.methods())
	})
}

// TestRegression6CloseDeadThenLive: with a context that has ended Close returns its error, and the
// lease is revoked in the background; with a live context Close waits for that.
func TestRegression6CloseDeadThenLive(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.revoke = []reply{late(500*time.Millisecond, ok(0))}
		session := open(t, s.config(0))
		cause := errors.New("no time")
		dead, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		err := session.Close(dead)
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "eldest: close session lease 2a: no time")
		require.Zero(t, time.Since(s.begun), "nothing was waited for")
		require.Error(t, session.Context().Err(), "it is closed all the same")

		require.NoError(t, session.Close(etcdtest.ContextFor(t, time.Minute)))
		require.Equal(t, 500*time.Millisecond, time.Since(s.begun))
		require.Len(t, s.requests("revoke"), 1)
	})
}

// TestRevocation: the revocation is repeated until etcd answers, or for one TTL, even
// if the context of Close has no end. A permanent refusal is not repeated. Each call of Close
// returns the same error, which does not look like the end of the caller's context.
func TestRevocation(t *testing.T) {
	const expires = "the lease expires by itself within 10s"
	for name, tc := range map[string]struct {
		script []reply
		reason error // nil: the lease is gone
		text   string
		sent   int
		took   time.Duration
	}{
		"away for a while": {[]reply{hole, fail(rpctypes.ErrNoLeader), fail(errAway), hole, ok(0)}, nil, "", 5, 2400 * time.Millisecond},
		"gone":             {[]reply{fail(errAway), fail(rpctypes.ErrLeaseNotFound)}, nil, "", 2, 100 * time.Millisecond},
		"no answer": {[]reply{hole}, eldest.ErrUnavailable,
			"eldest: close session lease 2a: revoke: etcd does not answer: no answer within the TTL of 10s", 10, 10 * time.Second},
		"no permission": {[]reply{fail(rpctypes.ErrPermissionDenied)}, rpctypes.ErrPermissionDenied, expires, 1, 0},
		"closed client": {[]reply{fail(context.Canceled)}, eldest.ErrClosed, expires, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *server) {
				s.revoke = tc.script
				session := open(t, s.config(0))
				for range 2 {
					err := session.Close(context.Background())
					require.ErrorIs(t, err, tc.reason)
					require.NotErrorIs(t, err, context.Canceled)
					require.NotErrorIs(t, err, context.DeadlineExceeded)
					if tc.reason != nil {
						require.ErrorContains(t, err, tc.text)
					}
				}
				require.Equal(t, tc.took, time.Since(s.begun))
				require.Len(t, s.requests("revoke"), tc.sent)
				for _, r := range s.requests("revoke") {
					require.Positive(t, r.timeout, "an attempt without a time-out")
					require.LessOrEqual(t, r.timeout, time.Second)
				}
			})
		})
	}
}

// TestCloseDuringARenewal: the renewal in progress is cancelled, its reply is ignored, and the
// revocation is sent after it.
func TestCloseDuringARenewal(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		renewing := make(chan struct{})
		s.renew = []reply{func(ctx context.Context) (int64, error) {
			close(renewing)
			<-ctx.Done()
			return 10, nil // the reply had arrived already
		}}
		var r record
		cfg := s.config(0)
		cfg.Hooks = r.hooks()
		session := open(t, cfg)
		<-renewing
		at := time.Since(s.begun)
		require.NoError(t, session.Close(context.Background()))
		require.Equal(t, at, time.Since(s.begun))
		require.Equal(t, []string{"lost"}, r.names())
		require.Len(t, s.requests("revoke"), 1)
	})
}

// TestLossRevokes: a session that was lost at the deadline revokes its lease, in case etcd is
// available after all, so that the successor waits for a shorter time.
func TestLossRevokes(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.renew, s.revoke = []reply{fail(errAway)}, []reply{fail(errAway), ok(0)}
		session := open(t, s.config(0))
		<-session.Done()
		time.Sleep(time.Second)
		require.Len(t, s.requests("revoke"), 2)
		require.NoError(t, session.Close(context.Background()))
		require.ErrorIs(t, session.Err(), eldest.ErrSessionLost, "the cause never changes")
		require.Len(t, s.requests("revoke"), 2)
	})
}

// Regression 45: a lease whose revocation is on its way, or may be, is not resumed in this process:
// the revocation would end the resumed session. A refusal is an answer.
//
// Fails if the process forgets sent requests when the session ends.
func TestLeaseThatMayBeRevokedIsNotResumed(t *testing.T) {
	for name, tc := range map[string]struct {
		revoke  reply
		resumed bool
	}{
		"no answer": {hole, false},
		"doubtful":  {fail(errAway), false},
		"refused":   {fail(rpctypes.ErrPermissionDenied), true},
		"too late":  {late(time.Second, ok(0)), false}, // and Close does not wait for it
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *server) {
				s.revoke = []reply{tc.revoke}
				session := open(t, s.config(0))
				require.Error(t, session.Close(etcdtest.ContextFor(t, 500*time.Millisecond)))
				session.Abandon()
				resumed, err := lease.Resume(t.Context(), s.config(0), session.ID())
				if tc.resumed {
					require.NoError(t, err)
					resumed.Abandon()
					return
				}
				require.ErrorIs(t, err, eldest.ErrSessionLost, "resumed, and about to be revoked")
				require.ErrorContains(t, err, "revoke")
				require.Empty(t, s.requests("renew"), "it was asked for")
			})
		})
	}
}

// Regression 45: a session that is lost revokes its lease a moment later. A Resume between the two
// is also refused.
//
// Fails if the revocation is recorded only when it is sent.
func TestResumeJustBeforeTheRevocation(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		renewing, let := make(chan struct{}), make(chan struct{})
		s.renew = []reply{func(context.Context) (int64, error) {
			close(renewing)
			<-let // the goroutine was stopped here
			return 10, nil
		}, ok(10)}
		session := open(t, s.config(0))
		<-renewing
		session.Forfeit(nil)
		<-session.Done()
		resumed, err := lease.Resume(t.Context(), s.config(0), session.ID())
		close(let)
		defer session.Abandon()
		if err == nil {
			defer resumed.Abandon()
			synctest.Wait()
			require.Empty(t, s.requests("revoke"), "the resumed session's lease is revoked by the one before it")
		}
		require.ErrorIs(t, err, eldest.ErrSessionLost)
	})
}

// TestSharedLeaseIsLeftAlone: a lease that one of several sessions has lost may be renewed by
// another; only Close revokes it.
func TestSharedLeaseIsLeftAlone(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.renew = []reply{fail(errAway)}
		cfg := s.config(0)
		cfg.Shared = true
		session := open(t, cfg)
		<-session.Done()
		time.Sleep(time.Minute)
		require.NoError(t, session.Close(t.Context()))
		require.Empty(t, s.requests("revoke"))

		s = newServer()
		cfg = s.config(0)
		cfg.Shared = true
		require.NoError(t, open(t, cfg).Close(t.Context()))
		require.Len(t, s.requests("revoke"), 1)
	})
}

func TestAbandonSendsNothing(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		var r record
		cfg := s.config(0)
		cfg.Hooks = r.hooks()
		session := open(t, cfg)
		time.Sleep(time.Minute)
		before := s.methods()
		session.Abandon()
		session.Abandon()
		require.Equal(t, time.Minute, time.Since(s.begun))
		require.ErrorIs(t, session.Err(), eldest.ErrClosed)
		require.ErrorContains(t, session.Err(), "abandoned")
		require.False(t, session.Holds(0))
		require.NoError(t, session.Close(context.Background()))
		time.Sleep(time.Hour)
		require.Equal(t, before, s.methods())
		require.Equal(t, "lost", r.names()[len(r.names())-1])
	})
}

// TestSessionConcurrentSafe calls all methods concurrently, while renewals fail and succeed.
func TestSessionConcurrentSafe(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.grant = []reply{ok(2)}
		s.renew = slices.Repeat([]reply{ok(2), fail(errAway), ok(3)}, 50)
		var r record
		cfg := s.config(0)
		cfg.Hooks = r.hooks()
		session := open(t, cfg)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for session.Err() == nil {
					st := session.Status()
					if session.Holds(0) && st.State == lease.Lost {
						t.Error("held after it was lost")
					}
					session.TTL()
					loop.Of(session).Lock()
					loop.Of(session).Unlock() //nolint:staticcheck // it can be had
					time.Sleep(time.Duration(i+1) * time.Millisecond)
				}
			})
		}
		time.Sleep(20 * time.Second)
		for range 8 {
			all.Go(func() {
				if err := session.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.Len(t, s.requests("revoke"), 1)
		lost := 0
		for _, name := range r.names() {
			if name == "lost" {
				lost++
			}
		}
		require.Equal(t, 1, lost)
	})
}

// TestForfeitIsALoss: a session that its owner forfeits before the deadline has the state, error
// and hooks of a lost session.
func TestForfeitIsALoss(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		cfg := s.config(0)
		told := make(chan error, 2)
		cfg.Hooks.Lost = func(e lease.LostEvent) { told <- e.Cause }
		session := open(t, cfg)
		why := errors.New("the work had to stop")
		session.Forfeit(why)
		require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
		require.ErrorIs(t, session.Err(), why)
		session.Forfeit(nil)
		require.ErrorIs(t, session.Err(), why, "it was lost once")
		require.ErrorIs(t, <-told, why)
		synctest.Wait()
		require.Len(t, s.requests("revoke"), 1, "the next one need not wait")
		require.NoError(t, session.Close(t.Context()))
		require.Empty(t, told)
	})
}

// TestCloseWhileEtcdIsAway: Close ends with its context; the revocation is repeated until etcd is
// available again.
func TestCloseWhileEtcdIsAway(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.revoke = []reply{hole, fail(rpctypes.ErrNoLeader), fail(errAway), hole, ok(0)}
		session := open(t, s.config(0))
		err := session.Close(etcdtest.ContextFor(t, 300*time.Millisecond))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 300*time.Millisecond, time.Since(s.begun))
		require.NoError(t, session.Close(etcdtest.ContextFor(t, time.Minute)))
		require.Len(t, s.requests("revoke"), 5)
	})
}

// Regression 45: a session begins to revoke its lease while Resume waits for the answer to its
// renewal. The lease is not resumed.
//
// Fails if the revocation is looked for only before the renewal is sent.
func TestRevokedWhileItIsResumed(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.renew, s.revoke = []reply{late(time.Second, ok(10))}, []reply{hole}
		session := open(t, s.config(0))
		defer session.Abandon()
		time.AfterFunc(500*time.Millisecond, func() { session.Forfeit(nil) })
		resumed, err := lease.Resume(t.Context(), s.config(0), session.ID())
		if err == nil {
			resumed.Abandon()
		}
		require.ErrorIs(t, err, eldest.ErrSessionLost, "resumed, and about to be revoked")
		require.ErrorContains(t, err, "revoke")
		require.Len(t, s.requests("renew"), 1)
	})
}
