package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestWithdrawWhileWaiting(t *testing.T) {
	s := newStage(t)
	l := s.lead(s.candidate("a"))
	b := s.candidate("b")
	waiting := s.campaigning(s.ctx, b)
	s.queued(2)
	require.NoError(t, b.Withdraw(s.ctx))
	require.Equal(t, []string{l.Key()}, s.queue(), "confirmed when Withdraw returns")
	got := get(s, waiting)
	require.Nil(t, got.l)
	require.ErrorIs(t, got.err, eldest.ErrWithdrawn)
	require.NoError(t, b.Withdraw(s.ctx), "withdrawing again is harmless")

	// It may stand again.
	waiting = s.campaigning(s.ctx, b)
	s.queued(2)
	require.NoError(t, l.Resign(s.ctx))
	require.NoError(t, get(s, waiting).err)
	require.ErrorIs(t, b.Withdraw(s.ctx), eldest.ErrLeading, "a leader resigns")
}

func TestWithdrawAfterRegister(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	require.ErrorIs(t, c.Withdraw(s.ctx), eldest.ErrNotRegistered)
	_, err := c.Register(s.ctx)
	require.NoError(t, err)
	require.NoError(t, c.Withdraw(s.ctx))
	require.Empty(t, s.queue())
	_, err = c.Await(s.ctx)
	require.ErrorIs(t, err, eldest.ErrNotRegistered)
	require.ErrorIs(t, err, eldest.ErrWithdrawn)
}

func TestResign(t *testing.T) {
	s := newStage(t)
	session := s.session(s.cli)
	c := s.candidate("v", on(session))
	l := s.lead(c)
	require.NoError(t, l.Resign(s.ctx))
	require.Empty(t, s.queue(), "confirmed when Resign returns")
	require.ErrorIs(t, s.over(l), eldest.ErrResigned)
	require.NoError(t, l.Resign(s.ctx), "resigning again is harmless")

	again := s.lead(c)
	require.Greater(t, again.Token(), l.Token())
	require.NoError(t, l.Resign(s.ctx))
	require.NoError(t, again.Err(), "and does not touch a later tenure")
	require.Len(t, s.queue(), 1)

	require.NoError(t, session.Close(s.ctx))
	require.NoError(t, l.Resign(s.ctx), "not even after the session")
	for range 2 {
		require.ErrorIs(t, again.Resign(s.ctx), eldest.ErrNotLeading, "this one ended with the session")
	}
}

// Close has resigned already: whoever resigns after it wants what is so.
func TestResignAfterClose(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	l := s.lead(c)
	require.NoError(t, c.Close(s.ctx))
	require.NoError(t, l.Resign(s.ctx))
	require.ErrorIs(t, l.Err(), eldest.ErrClosed)
	require.Empty(t, s.queue())
}

func TestWithdrawWithADeadContextAndThenAgain(t *testing.T) {
	s := newStage(t)
	s.lead(s.candidate("a"))
	b := s.candidate("b")
	_, err := b.Register(s.ctx)
	require.NoError(t, err)
	dead, cancel := context.WithCancel(s.ctx)
	cancel()
	require.ErrorIs(t, b.Withdraw(dead), context.Canceled)
	require.NoError(t, b.Withdraw(s.ctx))
	require.Len(t, s.queue(), 1, "when the second one returns the key is gone")
}

func TestCloseInEachState(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(s *stage, c *election.Candidate) <-chan outcome
	}{
		{"idle", func(*stage, *election.Candidate) <-chan outcome { return nil }},
		{"registered", func(s *stage, c *election.Candidate) <-chan outcome {
			_, err := c.Register(s.ctx)
			require.NoError(s.t, err)
			return nil
		}},
		{"waiting", func(s *stage, c *election.Candidate) <-chan outcome {
			s.lead(s.candidate("elder"))
			waiting := s.campaigning(s.ctx, c)
			s.queued(2)
			return waiting
		}},
		{"leading", func(s *stage, c *election.Candidate) <-chan outcome {
			l := s.lead(c)
			s.t.Cleanup(func() { require.ErrorIs(s.t, l.Err(), eldest.ErrClosed) })
			return nil
		}},
		{"resigned", func(s *stage, c *election.Candidate) <-chan outcome {
			require.NoError(s.t, s.lead(c).Resign(s.ctx))
			return nil
		}},
		{"deposed", func(s *stage, c *election.Candidate) <-chan outcome {
			l := s.lead(c)
			s.remove(c.Key())
			require.ErrorIs(s.t, s.over(l), eldest.ErrDeposed)
			return nil
		}},
		{"resigning in the background", func(s *stage, c *election.Candidate) <-chan outcome {
			dead, cancel := context.WithCancel(s.ctx)
			cancel()
			_ = s.lead(c).Resign(dead)
			return nil
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t)
			session := s.session(s.cli)
			c := s.candidate("v", on(session))
			waiting := tc.prepare(s, c)
			require.NoError(t, c.Close(s.ctx))
			require.NotContains(t, s.queue(), c.Key())
			if waiting != nil {
				require.ErrorIs(t, get(s, waiting).err, eldest.ErrClosed)
			}
			require.NoError(t, c.Close(s.ctx))
			require.NoError(t, session.Err(), "the session belongs to the caller")
			for _, call := range []func(context.Context) (*election.Leadership, error){c.Campaign, c.Try, c.Await} {
				_, err := call(s.ctx)
				require.ErrorIs(t, err, eldest.ErrClosed)
			}
			_, err := c.Register(s.ctx)
			require.ErrorIs(t, err, eldest.ErrClosed)
			require.ErrorIs(t, c.Proclaim(s.ctx, nil), eldest.ErrClosed)
		})
	}
}

func TestCloseAfterTheSession(t *testing.T) {
	for _, state := range []string{"idle", "leading"} {
		t.Run(state, func(t *testing.T) {
			s := newStage(t)
			session := s.session(s.cli)
			c := s.candidate("v", on(session))
			if state == "leading" {
				s.lead(c)
			}
			require.NoError(t, session.Close(s.ctx))
			require.NoError(t, c.Close(s.ctx))
			require.Empty(t, s.queue())
		})
	}
}

// Regression 7: giving up returns at once even while etcd is away, and the key goes
// when etcd is back.
func TestGivingUpWhileEtcdIsUnreachable(t *testing.T) {
	for _, how := range []string{"context", "withdraw", "resign", "close"} {
		t.Run(how, func(t *testing.T) {
			s := newStage(t)
			host := etcdtest.Shared(t).Host(t)
			cli := host.Client(t)
			session := s.session(cli)
			elder := s.candidate("elder")
			c := s.candidate("v", on(session), func(cfg *election.Config) {
				cfg.KV, cfg.Watcher, cfg.Timeout = cli, cli, 200*time.Millisecond
			})
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			soon, done := context.WithTimeout(s.ctx, 50*time.Millisecond)
			defer done()

			var waiting <-chan outcome
			if how == "resign" {
				l := s.lead(c)
				host.Cut()
				require.ErrorIs(t, l.Resign(soon), context.DeadlineExceeded)
				require.ErrorIs(t, l.Err(), eldest.ErrResigned)
			} else {
				s.lead(elder)
				waiting = s.campaigning(ctx, c)
				s.queued(2)
				host.Cut()
			}
			switch how {
			case "context":
				cancel()
				require.ErrorIs(t, get(s, waiting).err, context.Canceled)
			case "withdraw":
				require.ErrorIs(t, c.Withdraw(soon), context.DeadlineExceeded)
				require.ErrorIs(t, get(s, waiting).err, eldest.ErrWithdrawn)
			case "close":
				require.ErrorIs(t, c.Close(soon), context.DeadlineExceeded)
				require.ErrorIs(t, get(s, waiting).err, eldest.ErrClosed)
			}
			require.Contains(t, s.queue(), c.Key(), "the cut is real")
			host.Mend()
			s.until("the key is gone", func() bool {
				for _, key := range s.queue() {
					if key == c.Key() {
						return false
					}
				}
				return true
			})
			require.NoError(t, session.Err(), "long before the lease would end")
			require.NoError(t, c.Close(s.ctx))
		})
	}
}

// Withdrawing again is harmless also where the first time met a registration on its
// way, of which nothing ever stood.
func TestWithdrawARegistrationTwice(t *testing.T) {
	s := newStage(t)
	c, g := s.gated("v", soon)
	sent := make(chan struct{})
	g.on(func(ctx context.Context) error { close(sent); <-ctx.Done(); return context.Cause(ctx) }, nil)
	waiting := s.campaigning(s.ctx, c)
	get(s, sent)
	require.NoError(t, c.Withdraw(s.ctx))
	require.ErrorIs(t, get(s, waiting).err, eldest.ErrWithdrawn)
	require.NoError(t, c.Withdraw(s.ctx))
	require.Empty(t, s.queue())
}
