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
	waiting := s.campaigning(s.Ctx, b)
	s.queued(2)
	require.NoError(t, b.Withdraw(s.Ctx))
	require.Equal(t, []string{l.Key()}, s.Queue(), "confirmed when Withdraw returns")
	got := get(s, waiting)
	require.Nil(t, got.l)
	require.ErrorIs(t, got.err, eldest.ErrWithdrawn)
	require.NoError(t, b.Withdraw(s.Ctx), "withdrawing again is harmless")

	// It may stand again.
	waiting = s.campaigning(s.Ctx, b)
	s.queued(2)
	require.NoError(t, l.Resign(s.Ctx))
	require.NoError(t, get(s, waiting).err)
	require.ErrorIs(t, b.Withdraw(s.Ctx), eldest.ErrLeading, "a leader resigns")
}

func TestWithdrawAfterRegister(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	require.ErrorIs(t, c.Withdraw(s.Ctx), eldest.ErrNotRegistered)
	require.NoError(t, etcdtest.Err(c.Register(s.Ctx)))
	require.NoError(t, c.Withdraw(s.Ctx))
	require.Empty(t, s.Queue())
	_, err := c.Await(s.Ctx)
	require.ErrorIs(t, err, eldest.ErrNotRegistered)
	require.ErrorIs(t, err, eldest.ErrWithdrawn)
}

func TestResign(t *testing.T) {
	s := newStage(t)
	session := s.session(s.Client)
	c := s.candidate("v", on(session))
	l := s.lead(c)
	require.NoError(t, l.Resign(s.Ctx))
	require.Empty(t, s.Queue(), "confirmed when Resign returns")
	require.ErrorIs(t, s.over(l), eldest.ErrResigned)
	require.NoError(t, l.Resign(s.Ctx), "resigning again is harmless")

	again := s.lead(c)
	require.Greater(t, again.Token(), l.Token())
	require.NoError(t, l.Resign(s.Ctx))
	require.NoError(t, again.Err(), "and does not touch a later tenure")
	require.Len(t, s.Queue(), 1)

	require.NoError(t, session.Close(s.Ctx))
	require.NoError(t, l.Resign(s.Ctx), "not even after the session")
	for range 2 {
		require.ErrorIs(t, again.Resign(s.Ctx), eldest.ErrNotLeading, "this one ended with the session")
	}
}

// Close has resigned already: whoever resigns after it wants what is so.
func TestResignAfterClose(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	l := s.lead(c)
	require.NoError(t, c.Close(s.Ctx))
	require.NoError(t, l.Resign(s.Ctx))
	require.ErrorIs(t, l.Err(), eldest.ErrClosed)
	require.Empty(t, s.Queue())
}

func TestWithdrawWithADeadContextAndThenAgain(t *testing.T) {
	s := newStage(t)
	s.lead(s.candidate("a"))
	b := s.candidate("b")
	require.NoError(t, etcdtest.Err(b.Register(s.Ctx)))
	dead, cancel := context.WithCancel(s.Ctx)
	cancel()
	require.ErrorIs(t, b.Withdraw(dead), context.Canceled)
	require.NoError(t, b.Withdraw(s.Ctx))
	require.Len(t, s.Queue(), 1, "when the second one returns the key is gone")
}

func TestCloseInEachState(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(s *stage, c *election.Candidate) <-chan outcome
	}{
		{"idle", func(*stage, *election.Candidate) <-chan outcome { return nil }},
		{"registered", func(s *stage, c *election.Candidate) <-chan outcome {
			require.NoError(s.T, etcdtest.Err(c.Register(s.Ctx)))
			return nil
		}},
		{"waiting", func(s *stage, c *election.Candidate) <-chan outcome {
			s.lead(s.candidate("elder"))
			waiting := s.campaigning(s.Ctx, c)
			s.queued(2)
			return waiting
		}},
		{"leading", func(s *stage, c *election.Candidate) <-chan outcome {
			l := s.lead(c)
			s.T.Cleanup(func() { require.ErrorIs(s.T, l.Err(), eldest.ErrClosed) })
			return nil
		}},
		{"resigned", func(s *stage, c *election.Candidate) <-chan outcome {
			require.NoError(s.T, s.lead(c).Resign(s.Ctx))
			return nil
		}},
		{"deposed", func(s *stage, c *election.Candidate) <-chan outcome {
			l := s.lead(c)
			s.Remove(c.Key())
			require.ErrorIs(s.T, s.over(l), eldest.ErrDeposed)
			return nil
		}},
		{"resigning in the background", func(s *stage, c *election.Candidate) <-chan outcome {
			dead, cancel := context.WithCancel(s.Ctx)
			cancel()
			_ = s.lead(c).Resign(dead)
			return nil
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t)
			session := s.session(s.Client)
			c := s.candidate("v", on(session))
			waiting := tc.prepare(s, c)
			require.NoError(t, c.Close(s.Ctx))
			require.NotContains(t, s.Queue(), c.Key())
			if waiting != nil {
				require.ErrorIs(t, get(s, waiting).err, eldest.ErrClosed)
			}
			require.NoError(t, c.Close(s.Ctx))
			require.NoError(t, session.Err(), "the session belongs to the caller")
			for _, call := range []func(context.Context) (*election.Leadership, error){c.Campaign, c.Try, c.Await} {
				require.ErrorIs(t, etcdtest.Err(call(s.Ctx)), eldest.ErrClosed)
			}
			require.ErrorIs(t, etcdtest.Err(c.Register(s.Ctx)), eldest.ErrClosed)
			require.ErrorIs(t, c.Proclaim(s.Ctx, nil), eldest.ErrClosed)
		})
	}
}

func TestCloseAfterTheSession(t *testing.T) {
	for _, state := range []string{"idle", "leading"} {
		t.Run(state, func(t *testing.T) {
			s := newStage(t)
			session := s.session(s.Client)
			c := s.candidate("v", on(session))
			if state == "leading" {
				s.lead(c)
			}
			require.NoError(t, session.Close(s.Ctx))
			require.NoError(t, c.Close(s.Ctx))
			require.Empty(t, s.Queue())
		})
	}
}

// Regression 7: whoever gives up by Withdraw, Resign or Close returns with its context even
// while etcd is away, and the key goes when etcd is back. (TestRegression07_CancelledWhileEtcdIsAway
// ends the context of the campaign itself.)
func TestGivingUpWhileEtcdIsUnreachable(t *testing.T) {
	for _, how := range []string{"withdraw", "resign", "close"} {
		t.Run(how, func(t *testing.T) {
			s := newStage(t)
			host := etcdtest.Shared(t).Host(t)
			cli := host.Client(t)
			session := s.session(cli)
			elder := s.candidate("elder")
			c := s.candidate("v", on(session), func(cfg *election.Config) {
				cfg.KV, cfg.Watcher, cfg.Timeout = cli, cli, 200*time.Millisecond
			})
			soon, done := context.WithTimeout(s.Ctx, 50*time.Millisecond)
			defer done()

			var waiting <-chan outcome
			if how == "resign" {
				l := s.lead(c)
				host.Cut()
				require.ErrorIs(t, l.Resign(soon), context.DeadlineExceeded)
				require.ErrorIs(t, l.Err(), eldest.ErrResigned)
			} else {
				s.lead(elder)
				waiting = s.campaigning(s.Ctx, c)
				s.queued(2)
				host.Cut()
			}
			switch how {
			case "withdraw":
				require.ErrorIs(t, c.Withdraw(soon), context.DeadlineExceeded)
				require.ErrorIs(t, get(s, waiting).err, eldest.ErrWithdrawn)
			case "close":
				require.ErrorIs(t, c.Close(soon), context.DeadlineExceeded)
				require.ErrorIs(t, get(s, waiting).err, eldest.ErrClosed)
			}
			require.Contains(t, s.Queue(), c.Key(), "the cut is real")
			host.Mend()
			s.Until("the key is gone", func() bool {
				for _, key := range s.Queue() {
					if key == c.Key() {
						return false
					}
				}
				return true
			})
			require.NoError(t, session.Err(), "long before the lease would end")
			require.NoError(t, c.Close(s.Ctx))
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
	waiting := s.campaigning(s.Ctx, c)
	get(s, sent)
	require.NoError(t, c.Withdraw(s.Ctx))
	require.ErrorIs(t, get(s, waiting).err, eldest.ErrWithdrawn)
	require.NoError(t, c.Withdraw(s.Ctx))
	require.Empty(t, s.Queue())
}
