package election_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// jumping is a clock on which the machine can be asleep.
type jumping struct {
	lease.Clock
	by atomic.Int64
}

func (j *jumping) Now() time.Duration { return j.Clock.Now() + time.Duration(j.by.Load()) }

// G3: after a suspend Go's timers are as late as the sleep was long; nothing has
// ended the tenure yet. Whatever is called first reads the clock and tells the truth.
//
// Broken by any of these asking the session's context only.
func TestFirstCallAfterASuspend(t *testing.T) {
	type call func(s *stage, idle *election.Candidate, l *election.Leadership) error
	var session *lease.Session
	for name, first := range map[string]call{
		"lead": func(s *stage, _ *election.Candidate, l *election.Leadership) error {
			return l.Lead(s.ctx, func(context.Context) error {
				s.t.Error("the function was called")
				return nil
			})
		},
		"session error":    func(*stage, *election.Candidate, *election.Leadership) error { return session.Err() },
		"leadership error": func(_ *stage, _ *election.Candidate, l *election.Leadership) error { return l.Err() },
		"proclaim": func(s *stage, _ *election.Candidate, l *election.Leadership) error {
			return l.Proclaim(s.ctx, nil)
		},
		"resign": func(s *stage, _ *election.Candidate, l *election.Leadership) error {
			return l.Resign(s.ctx)
		},
		"withdraw": func(s *stage, c *election.Candidate, _ *election.Leadership) error {
			err := c.Withdraw(s.ctx)
			require.ErrorIs(s.t, err, eldest.ErrNotRegistered)
			require.NotErrorIs(s.t, err, eldest.ErrWithdrawn)
			again := c.Withdraw(s.ctx)
			require.EqualError(s.t, again, err.Error(), "the same each time")
			return err
		},
		"register": func(s *stage, c *election.Candidate, _ *election.Leadership) error {
			_, err := c.Register(s.ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			clock := &jumping{Clock: lease.Boot()}
			session = s.session(s.admin, func(cfg *lease.Config) { cfg.Clock = clock })
			c, idle := s.candidate("v", on(session)), s.candidate("v", on(session), func(cfg *election.Config) {
				cfg.Election += " other"
			})
			l := s.lead(c)
			if name == "withdraw" {
				_, err := idle.Register(s.ctx)
				require.NoError(t, err)
			}
			clock.by.Store(int64(time.Hour))
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
	clock := &jumping{Clock: lease.Boot()}
	session := s.session(s.admin, func(cfg *lease.Config) { cfg.Clock = clock })
	var won atomic.Bool
	c, g := s.gated("v", on(session), func(cfg *election.Config) {
		cfg.Hooks.Won = func(election.WonEvent) { won.Store(true) }
	})
	g.on(nil, func(_ context.Context, err error) error {
		clock.by.Store(int64(time.Hour))
		return err
	})
	_, err := c.Campaign(s.ctx)
	require.ErrorIs(t, err, eldest.ErrSessionLost)
	require.NoError(t, c.Close(s.ctx))
	require.False(t, won.Load(), "a win after the end of the session")
}
