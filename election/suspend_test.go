package election_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// G3: after a suspend Go's timers are as late as the sleep was long; nothing has
// ended the tenure yet. Whatever is called first reads the clock and tells the truth.
//
// Broken by any of these asking the session's context only.
func TestFirstCallAfterASuspend(t *testing.T) {
	type call func(s *stage, idle *election.Candidate, l *election.Leadership) error
	var session *lease.Session
	var leading *election.Candidate
	for name, first := range map[string]call{
		"lead": func(s *stage, _ *election.Candidate, l *election.Leadership) error {
			return l.Lead(s.Ctx, func(context.Context) error {
				s.T.Error("the function was called")
				return nil
			})
		},
		"session error":    func(*stage, *election.Candidate, *election.Leadership) error { return session.Err() },
		"leadership error": func(_ *stage, _ *election.Candidate, l *election.Leadership) error { return l.Err() },
		"proclaim": func(s *stage, _ *election.Candidate, l *election.Leadership) error {
			return l.Proclaim(s.Ctx, nil)
		},
		"resign": func(s *stage, _ *election.Candidate, l *election.Leadership) error {
			return l.Resign(s.Ctx)
		},
		"withdraw": func(s *stage, c *election.Candidate, _ *election.Leadership) error {
			err := c.Withdraw(s.Ctx)
			require.ErrorIs(s.T, err, eldest.ErrNotRegistered)
			require.NotErrorIs(s.T, err, eldest.ErrWithdrawn)
			again := c.Withdraw(s.Ctx)
			require.EqualError(s.T, again, err.Error(), "the same each time")
			return err
		},
		"status": func(s *stage, _ *election.Candidate, l *election.Leadership) error {
			require.Zero(s.T, leading.Status())
			return l.Err()
		},
		"guarded write": func(s *stage, _ *election.Candidate, l *election.Leadership) error {
			require.ErrorIs(s.T, etcdtest.Err(l.Txn(s.Ctx).Then(clientv3.OpPut("k", "")).Commit()), eldest.ErrNotLeading)
			return context.Cause(l.Context())
		},
		"register": func(s *stage, c *election.Candidate, _ *election.Leadership) error {
			_, err := c.Register(s.Ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			clock := etcdtest.NewClock()
			session = s.session(s.Admin, func(cfg *lease.Config) { cfg.Clock = clock })
			c, idle := s.candidate("v", on(session)), s.candidate("v", on(session), func(cfg *election.Config) {
				cfg.Election += " other"
			})
			l := s.lead(c)
			leading = c
			require.True(t, c.Status().Leading)
			if name == "withdraw" {
				require.NoError(t, etcdtest.Err(idle.Register(s.Ctx)))
			}
			clock.Jump(time.Hour)
			require.ErrorIs(t, first(s, idle, l), eldest.ErrSessionLost)
			require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
		})
	}
}

// The machine sleeps while the answer that makes a candidate the leader is on its way: no
// win, neither for the caller nor for the hook.
//
// Broken by taking the answer in before the clock is read.
func TestSuspendWhileTheReplyIsOnItsWay(t *testing.T) {
	s := newStage(t)
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
