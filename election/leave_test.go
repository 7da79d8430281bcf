package election_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

func TestWithdrawWithADeadContextAndThenAgain(t *testing.T) {
	s := newEnv(t)
	s.lead(s.candidate("a"))
	b := s.candidate("b")
	s.register(b)
	require.ErrorIs(t, b.Withdraw(etcdtest.ContextFor(t, 0)), context.DeadlineExceeded)
	require.NoError(t, b.Withdraw(s.Ctx))
	require.Len(t, s.Queue(), 1, "when the second one returns the key is gone")
}

// Close leaves no key and ends all work in progress, in each phase. The session belongs to the
// caller, which may have closed it before.
func TestCloseInEachState(t *testing.T) {
	lead := func(s *env, c *election.Candidate, _ *lease.Session) {
		l := s.lead(c)
		s.T.Cleanup(func() { require.ErrorIs(s.T, l.Err(), eldest.ErrClosed) })
	}
	for name, prepare := range map[string]func(s *env, c *election.Candidate, session *lease.Session){
		"idle":       func(*env, *election.Candidate, *lease.Session) {},
		"registered": func(s *env, c *election.Candidate, _ *lease.Session) { s.register(c) },
		"waiting": func(s *env, c *election.Candidate, _ *lease.Session) {
			s.lead(s.candidate("elder"))
			waiting := s.campaigning(s.Ctx, c)
			s.queued(2)
			s.T.Cleanup(func() { electiontest.Fails(s.T, waiting, eldest.ErrClosed) })
		},
		"leading":  lead,
		"resigned": func(s *env, c *election.Candidate, _ *lease.Session) { require.NoError(s.T, s.lead(c).Resign(s.Ctx)) },
		"deposed": func(s *env, c *election.Candidate, _ *lease.Session) {
			l := s.lead(c)
			s.Remove(c.Key())
			require.ErrorIs(s.T, s.over(l), eldest.ErrDeposed)
		},
		"resigning in the background": func(s *env, c *election.Candidate, _ *lease.Session) {
			_ = s.lead(c).Resign(etcdtest.ContextFor(s.T, 0))
		},
		"session closed": func(s *env, _ *election.Candidate, session *lease.Session) {
			require.NoError(s.T, session.Close(s.Ctx))
		},
		"leading, session closed": func(s *env, c *election.Candidate, session *lease.Session) {
			lead(s, c, session)
			require.NoError(s.T, session.Close(s.Ctx))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			session := s.session(s.Client)
			c := s.candidate("v", on(session))
			prepare(s, c, session)
			ended := session.Err()
			require.NoError(t, c.Close(s.Ctx))
			require.NotContains(t, s.Queue(), c.Key())
			require.NoError(t, c.Close(s.Ctx))
			require.Equal(t, ended, session.Err())
			for _, call := range []func(context.Context) (*election.Leadership, error){c.Campaign, c.Try, c.Await} {
				require.ErrorIs(t, etcdtest.Err(call(s.Ctx)), eldest.ErrClosed)
			}
			require.ErrorIs(t, etcdtest.Err(c.Register(s.Ctx)), eldest.ErrClosed)
			require.ErrorIs(t, c.Proclaim(s.Ctx, nil), eldest.ErrClosed)
		})
	}
}

// Regression 7: Withdraw, Resign and Close return with their context even while etcd is
// unavailable, and the key is removed when etcd is available again.
// (TestRegression07_CancelledWhileEtcdIsAway ends the context of the campaign itself.)
func TestGivingUpWhileEtcdIsUnreachable(t *testing.T) {
	for how, reason := range map[string]error{"withdraw": eldest.ErrWithdrawn, "resign": eldest.ErrResigned, "close": eldest.ErrClosed} {
		t.Run(how, func(t *testing.T) {
			s := newEnv(t)
			host := etcdtest.Shared(t).Host(t)
			cli := host.Client(t)
			session := s.session(cli)
			c := s.candidate("v", on(session), func(cfg *election.Config) {
				cfg.KV, cfg.Watcher, cfg.Timeout = cli, cli, 200*time.Millisecond
			})
			give := map[string]func(context.Context) error{"withdraw": c.Withdraw, "close": c.Close}[how]
			var over func() error
			if how == "resign" {
				l := s.lead(c)
				give, over = l.Resign, l.Err
			} else {
				s.lead(s.candidate("elder"))
				waiting := s.campaigning(s.Ctx, c)
				s.queued(2)
				over = func() error { return electiontest.Fails(t, waiting).Reason }
			}
			host.Cut()
			soon, done := context.WithTimeout(s.Ctx, 50*time.Millisecond)
			defer done()
			require.ErrorIs(t, give(soon), context.DeadlineExceeded)
			require.ErrorIs(t, over(), reason)
			require.Contains(t, s.Queue(), c.Key(), "the cut is real")
			host.Mend()
			s.Until("the key is gone", func() bool { return !slices.Contains(s.Queue(), c.Key()) })
			require.NoError(t, session.Err(), "long before the lease would end")
			require.NoError(t, c.Close(s.Ctx))
		})
	}
}

// Withdrawing again is harmless also if the first call found a registration on its way that never
// created a key.
func TestWithdrawARegistrationTwice(t *testing.T) {
	s := newEnv(t)
	c, g := s.gated("v")
	sent, lost := make(chan struct{}), make(chan struct{})
	g.on(func(context.Context) error { close(sent); <-lost; return context.DeadlineExceeded }, nil)
	waiting := s.campaigning(s.Ctx, c)
	get(s, sent)
	withdrawn := etcdtest.Go(func() error { return c.Withdraw(s.Ctx) })
	electiontest.Fails(t, waiting, eldest.ErrWithdrawn)
	close(lost) // not before: the campaign would send it again, and win
	require.NoError(t, get(s, withdrawn))
	require.NoError(t, c.Withdraw(s.Ctx))
	require.Empty(t, s.Queue())
}

// Regression 24: Close and Withdraw end a campaign that first resigns a drained tenure.
//
// Fails if the tenure is resigned before the campaign is the current call.
func TestEndOfACampaignThatResignsADrainedTenure(t *testing.T) {
	for how, reason := range map[string]error{"close": eldest.ErrClosed, "withdraw": eldest.ErrWithdrawn} {
		t.Run(how, func(t *testing.T) {
			s := newEnv(t)
			c, g := s.gated("v")
			s.lead(c).Drain(nil)
			sending, release := g.stop()
			campaign := s.campaigning(s.Ctx, c)
			get(s, sending)
			end := map[string]func(context.Context) error{"close": c.Close, "withdraw": c.Withdraw}[how]
			ended := etcdtest.Go(func() error { return end(s.Ctx) })
			select { // it either ends the campaign or waits for its answer
			case err := <-ended:
				t.Log(err)
			case <-time.After(time.Second):
			}
			close(release)
			electiontest.Fails(t, campaign, reason)
		})
	}
}

// Regression 45: a registration of unknown outcome is on its way, its session is abandoned and
// resumed, and the resumed session's candidate leaves. When it arrives its key is removed.
//
// Fails if the session, and not the lease, remembers which requests may still arrive.
func TestLateRegistrationAfterResume(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Admin)
	c, g := s.gated("v", on(session))
	s.lost(c, g)
	session.Abandon()

	resumed := s.resume(session)
	again := s.candidate("v", on(resumed), func(cfg *election.Config) { cfg.KV = g })
	require.NoError(t, s.lead(again).Resign(s.Ctx))
	require.NoError(t, again.Close(s.Ctx))
	s.arrives(session)
	s.clean(resumed) // fails if a key remains without a candidate
}

// G2 and G4: a drained tenure is not resumed with its token, although its key exists when the
// session is abandoned and resumed.
//
// Fails if Drain does not doom the token.
func TestDrainedTokenDoesNotComeBack(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Admin)
	l := s.lead(s.candidate("v", on(session)))
	l.Drain(nil)
	session.Abandon()
	require.Greater(t, s.lead(s.candidate("v", on(s.resume(session)))).Token(), l.Token(), "a drained token comes back")
}

// The session ends while the request of Resign is under way: nothing is confirmed, and the key exists.
//
// Fails if Resign returns nil.
func TestSessionEndsDuringAResignation(t *testing.T) {
	s := newEnv(t)
	session := s.session(s.Client)
	c, g := s.gated("v", on(session))
	l := s.lead(c)
	sending, release := g.stop()
	resigned := etcdtest.Go(func() error { return l.Resign(s.Ctx) })
	get(s, sending)
	abandoned := etcdtest.Go(func() error { session.Abandon(); return nil })
	get(s, session.Context().Done())
	go func() { close(release) }()
	err := get(s, resigned)
	require.NoError(t, get(s, abandoned))
	require.Len(t, s.Queue(), 1)
	require.ErrorIs(t, err, eldest.ErrClosed)
}
