package election_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// tenure is a tenure with its session and its candidate.
type tenure struct {
	*env
	session *lease.Session
	c       *election.Candidate
	l       *election.Leadership
}

func newTenure(t *testing.T, change ...func(*lease.Config)) *tenure {
	t.Helper()
	s := newEnv(t)
	session := s.session(s.Client, change...)
	c := s.candidate("v", on(session))
	return &tenure{s, session, c, s.lead(c)}
}

func (x *tenure) revoke() { require.NoError(x.T, etcdtest.Err(x.Admin.Revoke(x.Ctx, x.session.ID()))) }

// Every end of a tenure has a cause, and every later call fails with that cause.
func TestTenureEndsWithACause(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(x *tenure)
		want error
	}{
		"resigned":    {func(x *tenure) { require.NoError(x.T, x.l.Resign(x.Ctx)) }, eldest.ErrResigned},
		"key removed": {func(x *tenure) { x.Remove(x.c.Key()) }, eldest.ErrDeposed},
		"key removed and written again in its place": {func(x *tenure) {
			x.Remove(x.c.Key())
			x.Put(x.c.Key(), "v", clientv3.WithLease(x.session.ID()))
		}, eldest.ErrDeposed},
		"key overwritten without the lease": {func(x *tenure) { x.Put(x.c.Key(), "by hand") }, eldest.ErrDeposed},
		"session closed":                    {func(x *tenure) { require.NoError(x.T, x.session.Close(x.Ctx)) }, eldest.ErrClosed},
		"session abandoned":                 {func(x *tenure) { x.session.Abandon(); x.revoke() }, eldest.ErrClosed},
		"candidate closed":                  {func(x *tenure) { require.NoError(x.T, x.c.Close(x.Ctx)) }, eldest.ErrClosed},
		"lease revoked":                     {(*tenure).revoke, eldest.ErrDeposed}, // the deletion of the key is noticed before the next renewal
	} {
		t.Run(name, func(t *testing.T) {
			x := newTenure(t)
			watch := x.l.Watcher().Watch(x.Ctx, x.data())
			tc.end(x)
			cause := x.over(x.l)
			x.Put(x.data(), "late")
			ends(t, watch, tc.want)
			require.ErrorIs(t, cause, tc.want)
			if x.session.Err() == nil {
				require.ErrorContains(t, cause, x.Election)
			}
			require.Same(t, cause, x.l.Err(), "always the same")
			for range 2 {
				x.is(x.l.Proclaim(x.Ctx, []byte("late")), eldest.ErrNotLeading, tc.want)
				require.ErrorIs(t, etcdtest.Err(x.l.Txn(x.Ctx).Then(clientv3.OpPut("data-"+x.Election, "late")).Commit()), tc.want)
				require.ErrorIs(t, etcdtest.Err(x.l.KV().Put(x.Ctx, "data-"+x.Election, "late")), tc.want)
				ends(t, x.l.Watcher().Watch(x.Ctx, "after "+x.data()), tc.want)
				x.is(x.l.Watcher().RequestProgress(x.Ctx), eldest.ErrNotLeading, tc.want)
				if err := x.l.Resign(x.Ctx); x.session.Err() != nil || errors.Is(tc.want, eldest.ErrDeposed) {
					require.ErrorIs(t, err, eldest.ErrNotLeading, "it did not end by a resignation")
				} else {
					require.NoError(t, err)
				}
			}
			require.Zero(t, x.watches("after "+x.data()), "requested after the end")
		})
	}
}

// A key that was overwritten remains after its lease has ended; its candidate removes it.
func TestOverwrittenKeyIsRemoved(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v")
	l := s.lead(c)
	next := s.campaigning(s.Ctx, s.candidate("next"))
	s.queued(2)
	s.Put(c.Key(), "by hand")
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)
	electiontest.Wins(t, next) // no candidate waits behind an orphaned key
	require.NotContains(t, s.Queue(), c.Key())
}

// A put by hand that keeps the lease and the create revision is a proclaim by another client: the
// tenure continues.
func TestKeyRewrittenWithItsLeaseIsNoEnd(t *testing.T) {
	x := newTenure(t)
	x.Put(x.c.Key(), "by hand", clientv3.WithLease(x.session.ID()))
	require.NoError(t, x.l.Proclaim(x.Ctx, []byte("mine")), "after the event")
	x.Remove(x.c.Key())
	require.ErrorIs(t, x.over(x.l), eldest.ErrDeposed)
}

// Regression 46: the etcd client is closed while the candidate leads. The session has another
// client and continues, and the key exists: the candidate was not deposed.
//
// Fails if every end of the watch counts as the deletion of the key.
func TestClientClosedWhileLeading(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Admin)
	cli := etcdtest.Shared(t).Client(t)
	c := s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV, cfg.Watcher = cli, cli })
	l := s.lead(c)
	require.NoError(t, cli.Close())
	err := s.over(l)
	require.NotErrorIs(t, err, eldest.ErrDeposed, "nobody was deposed")
	require.ErrorIs(t, err, eldest.ErrClosed)
	require.ErrorContains(t, err, "the etcd client")
	require.ErrorIs(t, l.Proclaim(s.Ctx, nil), eldest.ErrNotLeading)
	require.Equal(t, []string{c.Key()}, s.Queue())
	require.NoError(t, session.Err())
	require.NoError(t, session.Close(s.Ctx))
	require.Empty(t, s.Queue())
}

// G3: after a suspend of the machine Go's timers are late by the length of the suspend, so no timer
// has ended the tenure yet. The first call, whichever it is, reads the clock.
//
// Fails if any of these calls only uses the session's context.
func TestFirstCallAfterASuspend(t *testing.T) {
	for name, first := range map[string]func(x *tenure, other *election.Candidate) error{
		"lead": func(x *tenure, _ *election.Candidate) error {
			return x.l.Lead(x.Ctx, func(context.Context) error { x.T.Error("the function was called"); return nil })
		},
		"session error":    func(x *tenure, _ *election.Candidate) error { return x.session.Err() },
		"leadership error": func(x *tenure, _ *election.Candidate) error { return x.l.Err() },
		"proclaim":         func(x *tenure, _ *election.Candidate) error { return x.l.Proclaim(x.Ctx, nil) },
		"resign":           func(x *tenure, _ *election.Candidate) error { return x.l.Resign(x.Ctx) },
		"withdraw": func(x *tenure, other *election.Candidate) error {
			err := other.Withdraw(x.Ctx)
			require.ErrorIs(x.T, err, eldest.ErrNotRegistered)
			require.NotErrorIs(x.T, err, eldest.ErrWithdrawn)
			require.EqualError(x.T, other.Withdraw(x.Ctx), err.Error(), "the same each time")
			return err
		},
		"status": func(x *tenure, _ *election.Candidate) error {
			require.Zero(x.T, x.c.Status())
			return x.l.Err()
		},
		"guarded write": func(x *tenure, _ *election.Candidate) error {
			require.ErrorIs(x.T, etcdtest.Err(x.l.Txn(x.Ctx).Then(clientv3.OpPut("k", "")).Commit()), eldest.ErrNotLeading)
			return context.Cause(x.l.Context())
		},
		"guarded watch": func(x *tenure, _ *election.Candidate) error {
			return rest(x.T, x.l.Watcher().Watch(x.Ctx, "data")).err
		},
		"register": func(x *tenure, other *election.Candidate) error { return etcdtest.Err(other.Register(x.Ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			clock := etcdtest.NewClock()
			x := newTenure(t, func(cfg *lease.Config) { cfg.Clock = clock })
			other := x.candidate("v", on(x.session), func(cfg *election.Config) { cfg.Election += " other" })
			if name == "withdraw" {
				x.register(other)
			}
			clock.Jump(time.Hour)
			require.ErrorIs(t, first(x, other), eldest.ErrSessionLost)
			require.ErrorIs(t, x.session.Err(), eldest.ErrSessionLost)
		})
	}
}

// The machine is suspended while the reply that makes a candidate the leader is on its way: there
// is no win, neither for the caller nor for the hook.
//
// Fails if the reply is processed before the clock is read.
func TestSuspendWhileTheReplyIsOnItsWay(t *testing.T) {
	s := newEnv(t)
	clock := etcdtest.NewClock()
	session := s.session(s.Admin, func(cfg *lease.Config) { cfg.Clock = clock })
	var won atomic.Bool
	c, g := s.gated("v", on(session), func(cfg *election.Config) {
		cfg.Hooks.Won = func(election.WonEvent) { won.Store(true) }
	})
	g.on(nil, func(_ context.Context, err error) error {
		clock.Jump(time.Hour)
		return err
	})
	require.ErrorIs(t, etcdtest.Err(c.Campaign(s.Ctx)), eldest.ErrSessionLost)
	require.NoError(t, c.Close(s.Ctx))
	require.False(t, won.Load(), "a win after the end of the session")
}

// Resigning a tenure again does not end a later one of the same candidate.
func TestResignAgain(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v")
	l := s.lead(c)
	require.NoError(t, l.Resign(s.Ctx))
	require.Empty(t, s.Queue(), "confirmed when Resign returns")
	again := s.lead(c)
	require.NoError(t, l.Resign(s.Ctx))
	require.NoError(t, again.Err())
	require.Len(t, s.Queue(), 1)
}

// Evict removes a key only with the create revision that was read, and ends its tenure.
func TestEvict(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v")
	l := s.lead(c)
	evict := func(token eldest.Token) {
		t.Helper()
		require.NoError(t, election.Evict(s.Ctx, s.Admin, s.Election, eldest.Candidate{Key: c.Key(), Token: token}))
	}
	evict(l.Token() + 1)
	require.NoError(t, l.Err())
	evict(l.Token())
	require.ErrorIs(t, s.over(l), eldest.ErrDeposed)
	again := s.lead(c)
	evict(l.Token())
	require.NoError(t, again.Proclaim(s.Ctx, []byte("the key is there")))
}

// The reply to an eviction is lost, and the repetition is refused: the candidate may be evicted, and here
// it is.
//
// Fails if the refusal alone is returned.
func TestEvictIsRefusedAfterALostReply(t *testing.T) {
	x := newTenure(t)
	g := newGate(x.Admin)
	g.on(nil, func(context.Context, error) error {
		g.on(func(context.Context) error { return rpctypes.ErrPermissionDenied }, nil)
		return context.DeadlineExceeded
	})
	err := election.Evict(x.Ctx, g, x.Election, eldest.Candidate{Key: x.c.Key(), Token: x.l.Token()})
	require.Empty(t, x.Queue())
	x.is(err, rpctypes.ErrPermissionDenied, eldest.ErrOutcomeUnknown)
}
