package election_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// G7: after a lost session there is a new one, and a new candidate. Where the two
// share a turn, a function of the old one that ignores its context is waited for.
//
// Broken by each candidate having a turn of its own.
func TestLeadNeverOverlapsOverSessions(t *testing.T) {
	s := newStage(t)
	turn := election.NewTurn()
	shared := func(cfg *election.Config) { cfg.Turn = turn }
	var running atomic.Int32
	stop, runs := make(chan struct{}), make(chan struct{}, 2)
	lead := func(context.Context) error { // does not look at its context
		if running.Add(1) > 1 {
			t.Error("two at once")
		}
		defer running.Add(-1)
		runs <- struct{}{}
		<-stop
		return nil
	}
	session := s.session(s.Admin)
	lost := s.lead(s.candidate("v", on(session), shared))
	first, second, third := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() { first <- lost.Lead(s.Ctx, lead) }()
	get(s, runs)
	require.NoError(t, etcdtest.Err(s.Admin.Revoke(s.Ctx, session.ID())))
	s.remaining(session)

	// A tenure may end while it waits for its turn.
	waits := s.lead(s.candidate("v", shared))
	go func() { second <- waits.Lead(s.Ctx, lead) }()
	require.NoError(t, waits.Resign(s.Ctx))
	require.ErrorIs(t, get(s, second), eldest.ErrResigned)

	next := s.lead(s.candidate("v", shared))
	go func() { third <- next.Lead(s.Ctx, lead) }()
	// Who has a turn of its own does not wait, and proves that there was time.
	alone := s.candidate("v", func(cfg *election.Config) { cfg.Election += " other" })
	require.NoError(t, s.lead(alone).Lead(s.Ctx, func(context.Context) error { return nil }))
	require.Empty(t, runs)
	close(stop)
	require.NoError(t, get(s, first))
	get(s, runs)
	require.NoError(t, get(s, third))
}

// remaining waits until the loss of a revoked lease was noticed, if it was not yet.
func (s *stage) remaining(session *lease.Session) {
	s.T.Helper()
	s.Until("the queue is free", func() bool { return len(s.Queue()) == 0 })
	session.Abandon()
	require.Error(s.T, session.Err())
}

// Protocol, step 6: the function's context has ended before anything is sent that
// lets another one lead; it does not end a moment later, on a goroutine of its own.
//
// Broken by making the context from the caller's and ending it by AfterFunc.
func TestContextOfTheFunctionEndsBeforeTheKeyGoes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c, g := s.gated("v")
	late := 0
	for range 200 { // the wrong answer would be a matter of luck
		l := s.lead(c)
		given, done := make(chan context.Context, 1), make(chan error, 1)
		go func() {
			done <- l.Lead(s.Ctx, func(ctx context.Context) error {
				given <- ctx
				<-ctx.Done()
				return nil
			})
		}()
		ctx := get(s, given)
		g.on(func(context.Context) error {
			if ctx.Err() == nil {
				late++
			}
			return nil
		}, nil)
		require.NoError(t, l.Resign(s.Ctx))
		require.NoError(t, get(s, done))
	}
	require.Zero(t, late, "the removal was sent while the function's context was live")
}

// Regression 7: cancelled while etcd cannot be reached, Lead gives up after about
// one time-out and says so; the key goes in the background.
//
// Broken by resigning without a bound, which takes until the session is lost.
func TestLeadCancelledWhileEtcdIsUnreachable(t *testing.T) {
	s := newStage(t)
	host := etcdtest.Shared(t).Host(t)
	cli := host.Client(t)
	session := s.session(s.Admin) // of ten minutes
	c := s.candidate("v", on(session), func(cfg *election.Config) {
		cfg.KV, cfg.Watcher, cfg.Timeout = cli, cli, 200*time.Millisecond
	})
	l := s.lead(c)
	ctx, cancel := context.WithCancel(s.Ctx)
	begin := time.Now()
	err := l.Lead(ctx, func(context.Context) error {
		host.Cut()
		cancel()
		return nil
	})
	require.Error(t, err)
	require.Less(t, time.Since(begin), patience/2)
	require.ErrorIs(t, l.Err(), eldest.ErrResigned)
	require.Len(t, s.Queue(), 1)
	host.Mend()
	s.queued(0)
}

// One request that is lost on the way does not fail the resignation of a function
// that returned by itself: its caller has time.
//
// Broken by bounding the resignation by one time-out whatever ended.
func TestLeadResignsThoughARequestIsLost(t *testing.T) {
	s := newStage(t)
	c, g := s.gated("v", func(cfg *election.Config) { cfg.Timeout = 200 * time.Millisecond })
	l := s.lead(c)
	require.NoError(t, l.Lead(s.Ctx, func(context.Context) error {
		g.on(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil)
		return nil
	}))
	require.Empty(t, s.Queue())
}

// Regression 49: a lead function of an earlier tenure never returns. The new tenure gives
// up after a while, so that another candidate leads.
//
// Broken by a Lead that waits for its turn without a limit.
func TestStuckFunctionDoesNotKeepTheNextTenure(t *testing.T) {
	s := newStage(t)
	turn := election.NewTurn()
	shared := func(cfg *election.Config) { cfg.Turn, cfg.Drain = turn, 50*time.Millisecond }
	session := s.session(s.Admin)
	lost := s.lead(s.candidate("v", on(session), shared))
	running, stop, first := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		first <- lost.Lead(s.Ctx, func(context.Context) error { close(running); <-stop; return nil })
	}()
	get(s, running)
	require.NoError(t, etcdtest.Err(s.Admin.Revoke(s.Ctx, session.ID())))
	s.remaining(session)

	l := s.lead(s.candidate("v", shared))
	_, next, waits := s.waitingFor("next")
	get(s, waits)
	limit, cancel := context.WithTimeout(s.Ctx, patience/2)
	defer cancel()
	err := l.Lead(limit, func(context.Context) error { t.Error("two at once"); return nil })
	require.ErrorIs(t, err, eldest.ErrStuck, "it waits for its turn for ever")
	require.ErrorIs(t, l.Err(), eldest.ErrResigned)
	require.NoError(t, get(s, next).err, "a healthy candidate leads")
	close(stop)
	require.NoError(t, get(s, first))
}

// Two calls of Lead in one tenure take turns, however long the first one takes: it is not
// stuck, for its context has not ended.
//
// Broken by a limit of the wait for any function.
func TestLongFunctionOfTheSameTenureIsNotStuck(t *testing.T) {
	s := newStage(t)
	l := s.lead(s.candidate("v", func(cfg *election.Config) { cfg.Drain = 10 * time.Millisecond }))
	running, stop, first, second := make(chan struct{}), make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		first <- l.Lead(s.Ctx, func(context.Context) error { close(running); <-stop; return nil })
	}()
	get(s, running)
	go func() { second <- l.Lead(s.Ctx, func(context.Context) error { return nil }) }()
	select {
	case err := <-second:
		require.NoError(t, err, "it has ended its own tenure")
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, l.Err())
	close(stop)
	require.NoError(t, get(s, first))
	_ = get(s, second) // it ran, or met the resignation of the first one
}
