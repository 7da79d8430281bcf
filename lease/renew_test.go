package lease_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/lease"
)

var errAway = errors.New("etcd is away")

// TestHeldForFiveTTLs: the session renews at TTL/4 with jitter of a tenth, each attempt has a
// time-out of TTL/12, and nothing else is sent.
func TestHeldForFiveTTLs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		s := newServer()
		var r record
		cfg := s.config(ttl)
		cfg.Hooks = r.hooks()
		session := open(t, cfg)

		time.Sleep(5 * ttl)
		synctest.Wait()
		require.Equal(t, lease.Alive, session.Status().State)
		require.NoError(t, session.Err())
		renewals := s.requests("renew")
		require.GreaterOrEqual(t, len(renewals), 20)
		require.LessOrEqual(t, len(renewals), 23)
		last, even := time.Duration(0), true
		for i, r := range renewals {
			gap := r.at - last
			require.LessOrEqual(t, gap, ttl/4)
			require.GreaterOrEqual(t, gap, ttl/4*9/10)
			if !onStream {
				require.Equal(t, ttl/12, r.timeout)
			}
			require.Equal(t, leaseID, r.id)
			even = even && (i == 0 || gap == renewals[0].at)
			last = r.at
		}
		require.False(t, even, "no jitter")
		require.Equal(t, map[string]int{"grant": 1, "renew": len(renewals)}, s.methods())

		require.NoError(t, session.Close(t.Context()))
		events := r.all()
		require.Len(t, events, len(renewals)+1)
		for i, e := range events[:len(renewals)] {
			require.Equal(t, "renewed", e.hook)
			require.Equal(t, renewals[i].at, e.at)
			require.Zero(t, e.renewed.Latency)
			require.Equal(t, ttl, e.renewed.TTL)
		}
		require.Equal(t, "lost", events[len(renewals)].hook)
	})
}

// TestGrantedTTLCounts: intervals and deadline follow from the granted TTL, not from the requested
// one.
func TestGrantedTTLCounts(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.grant, s.renew = []reply{ok(8)}, []reply{ok(8)}
		session := open(t, s.config(time.Second))
		require.Equal(t, 8*time.Second, session.TTL())
		require.Equal(t, 7200*time.Millisecond, session.Status().Remaining)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		renewals := s.requests("renew")
		require.Len(t, renewals, 1)
		require.InDelta(t, 1.9, renewals[0].at.Seconds(), 0.1)
		session.Abandon()
	})
}

// TestChangedTTLChangesTheRhythm: the TTL is raised, and lowered again.
func TestChangedTTLChangesTheRhythm(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.renew = []reply{ok(40), ok(40), ok(4), ok(4)}
		var asked []time.Duration
		cfg := s.config(10 * time.Second)
		cfg.Renewal = func(granted time.Duration) lease.Renewal {
			asked = append(asked, granted)
			return lease.DefaultRenewal(granted)
		}
		session := open(t, cfg)
		for i, want := range []struct{ ttl, every time.Duration }{
			{40 * time.Second, 2500 * time.Millisecond},
			{40 * time.Second, 10 * time.Second},
			{4 * time.Second, 10 * time.Second},
			{4 * time.Second, time.Second},
		} {
			before := time.Now()
			for len(s.requests("renew")) == i {
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
			require.InDelta(t, want.every.Seconds()*0.95, time.Since(before).Seconds(), want.every.Seconds()*0.051)
			require.Equal(t, want.ttl, session.TTL())
			margin := max(want.ttl/10, lease.MinMargin)
			require.InDelta(t, (want.ttl - margin).Seconds(), session.Status().Remaining.Seconds(), 0.002)
		}
		session.Abandon()
		require.Equal(t, []time.Duration{10 * time.Second, 10 * time.Second, 40 * time.Second, 4 * time.Second}, asked,
			"asked when the configuration is checked, for the grant, and at each change")
	})
}

// TestTTLThatDoesNotFit: if a server lowers the TTL below what the configured intervals allow, the
// session ends.
func TestTTLThatDoesNotFit(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.renew = []reply{ok(2)}
		cfg := s.config(10 * time.Second)
		cfg.Margin = 3 * time.Second
		session := open(t, cfg)
		<-session.Done()
		require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
		require.ErrorContains(t, session.Err(), "the server now grants 2s")
		require.NoError(t, session.Close(t.Context()))
	})
}

// TestLowerTTLInALateReply: after a reply that lowers the TTL, and was on its way for longer than
// that TTL, nothing is certain. (With the old and longer deadline the session would count on a
// lease that the server has expired.)
func TestLowerTTLInALateReply(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.grant, s.renew = []reply{ok(20)}, []reply{late(3*time.Second, ok(2))}
		cfg := s.config(20 * time.Second)
		cfg.Renewal = func(granted time.Duration) lease.Renewal {
			return lease.Renewal{Every: granted / 4, Timeout: 5 * time.Second}
		}
		var r record
		cfg.Hooks = r.hooks()
		session := open(t, cfg)
		<-session.Done()
		require.Equal(t, s.requests("renew")[0].at+3*time.Second, time.Since(s.begun))
		require.False(t, session.Holds(0))
		require.NoError(t, session.Close(t.Context()))
		require.Equal(t, []string{"lost"}, r.names())
	})
}

// TestLeaseGone: in whatever form the server replies that the lease does not exist, and whatever came
// before, the session is lost at once, and nothing more is sent, not even a revocation.
func TestLeaseGone(t *testing.T) {
	scripts := map[string][]reply{
		"TTL 0":            {ok(0)},
		"TTL below 0":      {ok(-1)},
		"an error":         {fail(rpctypes.ErrLeaseNotFound)},
		"later":            {ok(10), ok(10), ok(0)},
		"after a failure":  {ok(10), fail(errAway), ok(0)},
		"after silence":    {fail(errAway), hole, ok(0)},
		"an error later":   {fail(errAway), fail(rpctypes.ErrLeaseNotFound)},
		"an error of gRPC": {fail(rpctypes.ErrGRPCLeaseNotFound)},
	}
	if onStream {
		delete(scripts, "an error of gRPC") // etcd sends none on a stream
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *server) {
				s.renew = script
				session := open(t, s.config(10*time.Second))
				<-session.Done()
				renewals := s.requests("renew")
				require.Len(t, renewals, len(script))
				require.Equal(t, renewals[len(renewals)-1].at, time.Since(s.begun), "lost at once")
				require.ErrorIs(t, session.Err(), eldest.ErrSessionLost)
				require.ErrorContains(t, session.Err(), "eldest: session lease 2a: session lost: the server replied that the lease does not exist")
				require.False(t, session.Holds(0))
				require.Equal(t, lease.Status{State: lease.Lost, Cause: session.Err()}, session.Status())

				before := s.methods()
				time.Sleep(time.Hour)
				require.NoError(t, session.Close(t.Context()))
				require.Equal(t, before, s.methods(), "something was sent for a lease that is gone")
			})
		})
	}
}

// TestRegression28NormalRhythmAfterAFailure: one success ends the pauses of the back-off. (A
// session that continued to count its failures would renew with the pauses of the back-off
// permanently.)
func TestRegression28NormalRhythmAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl, ttls = 10 * time.Second, 5
		s := newServer()
		s.renew = []reply{fail(errAway), ok(10)}
		session := open(t, s.config(ttl))
		defer session.Abandon()
		time.Sleep(ttls * ttl)
		synctest.Wait()
		require.Equal(t, lease.Alive, session.Status().State)

		renewals := s.requests("renew")
		require.Equal(t, renewals[0].at+100*time.Millisecond, renewals[1].at, "tried again after the back-off")
		require.InDelta(t, 4*ttls, len(renewals), 3, "renewals in %d TTLs", ttls)
		for i, r := range renewals[2:] {
			require.InDelta(t, ttl.Seconds()/4*0.95, (r.at - renewals[i+1].at).Seconds(), ttl.Seconds()/4*0.051)
		}
	})
}

// TestStates goes through alive, at-risk, alive, at-risk, lost, and checks the hooks' times and the
// remaining time in each state.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 10 * time.Second / 12
		s := newServer()
		s.renew = []reply{ok(10), hole, hole, fail(errAway), ok(10), fail(errAway), hole}
		var r record
		cfg := s.config(10 * time.Second)
		cfg.Hooks = r.hooks()
		session := open(t, cfg)
		require.True(t, session.Holds(9*time.Second-1))
		require.False(t, session.Holds(9*time.Second), "an action that ends at the deadline is not over before it")

		<-session.Done()
		lost := time.Since(s.begun)
		require.NoError(t, session.Close(t.Context()))
		sent := s.requests("renew")
		events := r.all()
		require.Equal(t, []string{"renewed", "at-risk", "renewed", "recovered", "at-risk", "lost"}, r.names())

		// The first renewal's deadline is 9 s after it was sent.
		deadline := sent[0].at + 9*time.Second
		require.Equal(t, sent[1].at+timeout/2, sent[2].at, "once more beside the first")
		require.Equal(t, sent[1].at+timeout, events[1].at, "at-risk begins when the attempt has failed")
		require.Equal(t, deadline-events[1].at, events[1].remaining)
		require.Equal(t, events[1].at+100*time.Millisecond, sent[3].at, "tried again after the back-off")
		require.Equal(t, sent[3].at+100*time.Millisecond, sent[4].at)
		require.Equal(t, sent[4].at, events[2].at)
		require.Equal(t, deadline-events[2].at, events[2].renewed.Slack)
		require.Equal(t, events[2].at, events[3].at)

		require.Equal(t, sent[5].at, events[4].at)
		require.ErrorIs(t, events[4].err, errAway)
		require.Equal(t, sent[4].at+9*time.Second, lost)
		require.Equal(t, lost, events[5].at)
		require.ErrorIs(t, events[5].err, eldest.ErrSessionLost)
		require.ErrorContains(t, events[5].err, "no renewal was confirmed before the deadline")
		require.GreaterOrEqual(t, len(sent), 9, "tried until the deadline")
	})
}

// TestAtRiskAsStatus: the state as Status returns it, not as the hooks report it.
func TestAtRiskAsStatus(t *testing.T) {
	play(t, func(t *testing.T, s *server) {
		s.renew = []reply{fail(errAway)}
		session := open(t, s.config(10*time.Second))
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, lease.Status{State: lease.AtRisk, Remaining: 6500 * time.Millisecond}, session.Status())
		require.True(t, session.Holds(time.Second), "at-risk is not loss")
		session.Abandon()
	})
}
