package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

var errHandedOver = errors.New("handed over")

func TestDrain(t *testing.T) {
	s := newEnv(t)
	ends, change := ending()
	c := s.candidate("v", change)
	l := s.lead(c)
	_, next, waits := s.waitingFor("next")
	get(s, waits)
	under := l.Txn(s.Ctx).Then(clientv3.OpPut(s.Election+"-data", "late")) // made while it led

	l.Drain(errHandedOver)
	s.is(s.over(l), eldest.ErrDraining, errHandedOver)
	require.Equal(t, election.Status{Token: l.Token(), Draining: true}, c.Status())
	_, err := under.Commit()
	for _, err := range []error{err, l.Proclaim(s.Ctx, nil), c.Proclaim(s.Ctx, nil)} {
		s.is(err, eldest.ErrNotLeading, eldest.ErrDraining) // the guard refuses locally
	}
	require.ErrorIs(t, c.Withdraw(s.Ctx), eldest.ErrLeading, "the key is there")
	require.ErrorIs(t, etcdtest.Err(c.Requeue(s.Ctx)), eldest.ErrLeading)
	require.Equal(t, l.Key(), s.Queue()[0], "nobody leads until the key goes")
	require.Empty(t, next)
	require.Empty(t, ends)

	l.Drain(errors.New("again"))
	require.ErrorIs(t, l.Err(), errHandedOver, "the first cause counts")
	require.NoError(t, l.Resign(s.Ctx))
	require.ErrorIs(t, l.Err(), errHandedOver)
	require.NoError(t, l.Resign(s.Ctx), "again is harmless")
	won := electiontest.Wins(t, next)
	require.Greater(t, won.Token(), l.Token())
	l.Drain(nil) // of a tenure that is over
	require.NoError(t, won.Err())
	require.NoError(t, c.Close(s.Ctx))
	end := get(s, ends)
	require.Empty(t, ends, "once")
	require.True(t, end.Led)
	require.ErrorIs(t, end.Cause, eldest.ErrResigned)
	require.False(t, end.Drained.IsZero())
	require.False(t, end.At.Before(end.Drained))
	require.Equal(t, election.Status{}, c.Status())
}

// Lead keeps the key until its function has returned.
func TestDrainUnderLead(t *testing.T) {
	s := newEnv(t)
	l := s.lead(s.candidate("v"))
	_, next, waits := s.waitingFor("next")
	get(s, waits)
	begun, ended, release := make(chan struct{}), make(chan error, 1), make(chan struct{})
	done := etcdtest.Go(func() error {
		return l.Lead(s.Ctx, func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			<-release
			return nil
		})
	})
	get(s, begun)
	l.Drain(nil)
	require.ErrorIs(t, get(s, ended), eldest.ErrDraining)
	etcdtest.Never(t, func() bool { return s.Queue()[0] != l.Key() || len(next) > 0 }, 100*time.Millisecond,
		"a successor beside the function")
	close(release)
	require.NoError(t, get(s, done))
	electiontest.Wins(t, next)
}

func TestDrainByToken(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v")
	require.ErrorIs(t, c.Drain(1, nil), eldest.ErrNotLeading)
	l := s.lead(c)
	require.ErrorIs(t, c.Drain(l.Token()-1, nil), eldest.ErrNotLeading)
	require.NoError(t, l.Err())
	require.NoError(t, c.Drain(l.Token(), errHandedOver))
	require.ErrorIs(t, l.Err(), errHandedOver)
	require.NoError(t, c.Drain(l.Token(), nil), "again")
	require.NoError(t, l.Resign(s.Ctx))
	require.NoError(t, c.Drain(l.Token(), nil), "it did")
	l = s.lead(c)
	require.NoError(t, l.Resign(s.Ctx))
	s.is(c.Drain(l.Token(), nil), eldest.ErrNotLeading, eldest.ErrResigned)
}

// The tenure's error stays ErrDraining whatever ends the key of a drained tenure, and the hook is
// called once.
func TestEndsAfterADrain(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(s *env, c *election.Candidate)
		want error
	}{
		"close":   {func(s *env, c *election.Candidate) { require.NoError(s.T, c.Close(s.Ctx)) }, eldest.ErrClosed},
		"deposed": {func(s *env, c *election.Candidate) { s.Remove(c.Key()) }, eldest.ErrDeposed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			ends, change := ending()
			c := s.candidate("v", change)
			l := s.lead(c)
			l.Drain(nil)
			tc.end(s, c)
			end := get(s, ends)
			require.ErrorIs(t, end.Cause, tc.want)
			require.False(t, end.Drained.IsZero())
			require.ErrorIs(t, l.Err(), eldest.ErrDraining)
			require.NoError(t, c.Close(s.Ctx))
			require.Empty(t, ends)
			require.Empty(t, s.Queue())
		})
	}
	s := newEnv(t)
	session := s.session(s.Client)
	l := s.lead(s.candidate("v", on(session)))
	session.Abandon()
	l.Drain(nil)
	require.ErrorIs(t, l.Err(), eldest.ErrClosed, "what has passed counts")
	require.NoError(t, etcdtest.Err(s.Admin.Revoke(s.Ctx, session.ID())))
}

// Regression 49: a program campaigns again whenever a tenure is over, and another client drains its
// tenure: the next campaign ends that tenure, and registers again.
//
// Fails if a campaign takes a drained tenure for a current one.
func TestCampaignAfterADrain(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v")
	first := s.lead(c)
	_, next, waits := s.waitingFor("next")
	get(s, waits)
	first.Drain(nil)
	<-first.Done()
	again := s.campaigning(s.Ctx, c)
	s.Until("the drained tenure's key is gone", func() bool { return len(s.Queue()) > 0 && s.Queue()[0] != c.Key() })
	won := electiontest.Wins(t, next)
	require.NoError(t, won.Resign(s.Ctx))
	got := electiontest.Wins(t, again)
	require.Greater(t, got.Token(), won.Token())

	// While its function runs the key is kept; it is given up when the function returns.
	stop, led := s.stubborn(got.Leadership)
	got.Drain(nil)
	require.ErrorIs(t, etcdtest.Err(c.Campaign(s.Ctx)), eldest.ErrLeading)
	require.Equal(t, []string{c.Key()}, s.Queue())
	close(stop)
	require.NoError(t, get(s, led))
	s.lead(c)

	// If its context has ended the campaign does not begin; the tenure ends nevertheless.
	require.NoError(t, c.Drain(c.Status().Token, nil))
	require.ErrorIs(t, etcdtest.Err(c.Campaign(etcdtest.ContextFor(t, 0))), context.DeadlineExceeded)
	s.queued(0)
}

// Campaign returns its tenure even if that is over already.
//
// Fails in some rounds if Campaign returns only a tenure that is not over: it blocks for ever.
func TestCampaignWonAndOver(t *testing.T) {
	s := newEnv(t)
	var c *election.Candidate
	c = s.candidate("v", func(cfg *election.Config) {
		cfg.Hooks.Won = func(e election.WonEvent) { _ = c.Drain(e.Token, errHandedOver) }
	})
	for range 50 {
		l, err := c.Campaign(s.Ctx)
		require.NoError(t, err, "it was not told")
		<-l.Done()
		require.ErrorIs(t, l.Err(), errHandedOver)
	}
}
