package election_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
)

var errHandedOver = errors.New("handed over")

func TestRetire(t *testing.T) {
	s := newStage(t)
	ends := make(chan election.EndedEvent, 10)
	c := s.candidate("v", func(cfg *election.Config) { cfg.Hooks.Ended = func(e election.EndedEvent) { ends <- e } })
	l := s.lead(c)
	_, next, waits := s.waitingFor("next")
	get(s, waits)
	under := l.Txn(s.ctx).Then(clientv3.OpPut(s.election+"-data", "late")) // made while it led

	l.Retire(errHandedOver)
	err := s.over(l)
	require.ErrorIs(t, err, eldest.ErrRetired)
	require.ErrorIs(t, err, errHandedOver)
	require.Equal(t, election.Status{Token: l.Token(), Retired: true}, c.Status())
	_, err = under.Commit()
	require.ErrorIs(t, err, eldest.ErrNotLeading, "the guard refuses on this side")
	require.ErrorIs(t, err, eldest.ErrRetired)
	for _, err := range []error{l.Proclaim(s.ctx, nil), c.Proclaim(s.ctx, nil)} {
		require.ErrorIs(t, err, eldest.ErrNotLeading)
		require.ErrorIs(t, err, eldest.ErrRetired)
	}
	require.ErrorIs(t, c.Withdraw(s.ctx), eldest.ErrLeading, "the key stands")
	_, err = c.StepBack(s.ctx)
	require.ErrorIs(t, err, eldest.ErrLeading)
	require.Equal(t, l.Key(), s.queue()[0], "nobody leads until the key goes")
	require.Empty(t, next)
	require.Empty(t, ends)

	l.Retire(errors.New("again"))
	require.ErrorIs(t, l.Err(), errHandedOver, "the first cause counts")
	require.NoError(t, l.Resign(s.ctx))
	require.ErrorIs(t, l.Err(), errHandedOver)
	require.NoError(t, l.Resign(s.ctx), "again is harmless")
	won := get(s, next)
	require.NoError(t, won.err)
	require.Greater(t, won.l.Token(), l.Token())
	l.Retire(nil) // of a tenure that is over
	require.NoError(t, won.l.Err())
	require.NoError(t, c.Close(s.ctx))
	end := get(s, ends)
	require.Empty(t, ends, "once")
	require.True(t, end.Led)
	require.ErrorIs(t, end.Cause, eldest.ErrResigned)
	require.False(t, end.Retired.IsZero())
	require.False(t, end.At.Before(end.Retired))
	require.Equal(t, election.Status{}, c.Status())
}

// Lead keeps the key until its function has returned.
func TestRetireUnderLead(t *testing.T) {
	s := newStage(t)
	l := s.lead(s.candidate("v"))
	_, next, waits := s.waitingFor("next")
	get(s, waits)
	begun, ended, release := make(chan struct{}), make(chan error, 1), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- l.Lead(s.ctx, func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			<-release
			return nil
		})
	}()
	get(s, begun)
	l.Retire(nil)
	require.ErrorIs(t, get(s, ended), eldest.ErrRetired)
	require.Equal(t, l.Key(), s.queue()[0])
	require.Empty(t, next, "a successor beside the function")
	close(release)
	require.NoError(t, get(s, done))
	require.NoError(t, get(s, next).err)
}

func TestRetireByToken(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	require.ErrorIs(t, c.Retire(1, nil), eldest.ErrNotLeading)
	l := s.lead(c)
	require.ErrorIs(t, c.Retire(l.Token()-1, nil), eldest.ErrNotLeading)
	require.NoError(t, l.Err())
	require.NoError(t, c.Retire(l.Token(), errHandedOver))
	require.ErrorIs(t, l.Err(), errHandedOver)
	require.NoError(t, c.Retire(l.Token(), nil), "again")
	require.NoError(t, l.Resign(s.ctx))
	require.NoError(t, c.Retire(l.Token(), nil), "it did")
	l = s.lead(c)
	require.NoError(t, l.Resign(s.ctx))
	err := c.Retire(l.Token(), nil)
	require.ErrorIs(t, err, eldest.ErrNotLeading)
	require.ErrorIs(t, err, eldest.ErrResigned)
}

// Whatever ends the key of a retired tenure: it has said why it ended, and the hook
// comes once.
func TestEndsAfterARetirement(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(s *stage, c *election.Candidate)
		want error
	}{
		"close":   {func(s *stage, c *election.Candidate) { require.NoError(s.t, c.Close(s.ctx)) }, eldest.ErrClosed},
		"deposed": {func(s *stage, c *election.Candidate) { s.remove(c.Key()) }, eldest.ErrDeposed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			ends := make(chan election.EndedEvent, 10)
			c := s.candidate("v", func(cfg *election.Config) { cfg.Hooks.Ended = func(e election.EndedEvent) { ends <- e } })
			l := s.lead(c)
			l.Retire(nil)
			tc.end(s, c)
			end := get(s, ends)
			require.ErrorIs(t, end.Cause, tc.want)
			require.False(t, end.Retired.IsZero())
			require.ErrorIs(t, l.Err(), eldest.ErrRetired)
			require.NoError(t, c.Close(s.ctx))
			require.Empty(t, ends)
			require.Empty(t, s.queue())
		})
	}
	s := newStage(t)
	session := s.session(s.cli)
	l := s.lead(s.candidate("v", on(session)))
	session.Abandon()
	l.Retire(nil)
	require.ErrorIs(t, l.Err(), eldest.ErrClosed, "what has passed counts")
	_, err := s.admin.Revoke(s.ctx, session.ID())
	require.NoError(t, err)
}

// Regression 49: a program that campaigns again whenever a tenure is over, and whose tenure
// is retired from outside: the next campaign ends it, and enters the queue anew.
//
// Broken by a campaign that takes a retired tenure for a present one.
func TestCampaignAfterARetirement(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	first := s.lead(c)
	_, next, waits := s.waitingFor("next")
	get(s, waits)
	first.Retire(nil)
	<-first.Done()
	again := s.campaigning(s.ctx, c)
	s.until("the retired tenure's key is gone", func() bool { return len(s.queue()) > 0 && s.queue()[0] != c.Key() })
	won := get(s, next)
	require.NoError(t, won.err)
	require.NoError(t, won.l.Resign(s.ctx))
	got := get(s, again)
	require.NoError(t, got.err)
	require.Greater(t, got.l.Token(), won.l.Token())

	// While its function runs the key is kept; the function's end gives it up.
	running, stop, led := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		led <- got.l.Lead(s.ctx, func(context.Context) error { close(running); <-stop; return nil })
	}()
	get(s, running)
	got.l.Retire(nil)
	_, err := c.Campaign(s.ctx)
	require.ErrorIs(t, err, eldest.ErrLeading)
	require.Equal(t, []string{c.Key()}, s.queue())
	close(stop)
	require.NoError(t, get(s, led))
	s.lead(c)

	// With a context that has ended the campaign does not begin; the tenure ends all the same.
	require.NoError(t, c.Retire(c.Status().Token, nil))
	dead, end := context.WithCancel(s.ctx)
	end()
	_, err = c.Campaign(dead)
	require.ErrorIs(t, err, context.Canceled)
	s.queued(0)
}
