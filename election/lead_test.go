package election_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// valueKey is the key of a context's value.
type valueKey struct{}

// nothing is a function under Lead that does nothing.
func nothing(context.Context) error { return nil }

// stubborn leads with a function that ignores its context until stop is closed; done is Lead's
// result.
func (s *env) stubborn(l *election.Leadership) (stop chan struct{}, done <-chan error) {
	s.T.Helper()
	running, stop := make(chan struct{}), make(chan struct{})
	done = etcdtest.Go(func() error {
		return l.Lead(s.Ctx, func(context.Context) error { close(running); <-stop; return nil })
	})
	get(s, running)
	return stop, done
}

func TestLead(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v")
	l := s.lead(c)
	failure := errors.New("what the function returned")
	err := l.Lead(context.WithValue(s.Ctx, valueKey{}, "carried"), func(ctx context.Context) error {
		require.NoError(t, ctx.Err())
		require.Equal(t, "carried", ctx.Value(valueKey{}))
		require.Equal(t, []string{c.Key()}, s.Queue(), "the key is kept while it runs")
		return failure
	})
	require.ErrorIs(t, err, failure)
	require.Empty(t, s.Queue(), "it resigns")
	require.ErrorIs(t, s.over(l), eldest.ErrResigned)
	require.NoError(t, s.lead(c).Lead(s.Ctx, nothing))
}

// The first Lead of a candidate, which makes its mutex, concurrent with a request of another
// goroutine: for the race detector.
func TestLeadBesideProclaim(t *testing.T) {
	s := newEnv(t)
	l := s.lead(s.candidate("v"))
	proclaimed := etcdtest.Go(func() error { return l.Proclaim(s.Ctx, []byte("w")) })
	require.NoError(t, l.Lead(s.Ctx, func(context.Context) error { return get(s, proclaimed) }))
}

// The function's context ends with the caller's context or with the tenure, with the cause of that
// one; the key is kept until the function has returned.
func TestLeadEndsWithTheCallersContextOrTheTenure(t *testing.T) {
	why := errors.New("the program ends")
	for name, tc := range map[string]struct {
		end  func(s *env, key string, cancel context.CancelCauseFunc)
		want error
		kept bool
	}{
		"context": {func(_ *env, _ string, cancel context.CancelCauseFunc) { cancel(why) }, why, true},
		"deposed": {func(s *env, key string, _ context.CancelCauseFunc) { s.Remove(key) }, eldest.ErrDeposed, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			c := s.candidate("v")
			l := s.lead(c)
			ctx, cancel := context.WithCancelCause(s.Ctx)
			defer cancel(nil)
			var cause error
			var queue []string
			err := l.Lead(ctx, func(ctx context.Context) error {
				tc.end(s, c.Key(), cancel)
				get(s, ctx.Done())
				cause, queue = context.Cause(ctx), s.Queue()
				return nil
			})
			require.NoError(t, err, "the end of the tenure alone is no error")
			require.ErrorIs(t, cause, tc.want)
			require.Equal(t, tc.kept, len(queue) == 1)
			require.Empty(t, s.Queue())
		})
	}
}

// After the end of a tenure Lead never calls its function, not even for a moment.
func TestLeadAfterTheEnd(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v")
	never := func(context.Context) error { t.Error("the function was called"); return nil }
	for range 50 { // a wrong result would occur only in some rounds
		l := s.lead(c)
		require.NoError(t, l.Resign(s.Ctx))
		require.ErrorIs(t, l.Lead(s.Ctx, never), eldest.ErrResigned)
		require.ErrorIs(t, s.lead(c).Lead(etcdtest.ContextFor(t, 0), never), context.DeadlineExceeded)
		require.Empty(t, s.Queue(), "and it has resigned")
	}
}

// A panic does not keep the key, and reaches the caller.
func TestLeadResignsWhenItsFunctionPanics(t *testing.T) {
	s := newEnv(t)
	c := s.candidate("v")
	l := s.lead(c)
	require.PanicsWithValue(t, "oops", func() {
		_ = l.Lead(s.Ctx, func(context.Context) error { panic("oops") })
	})
	require.Empty(t, s.Queue())
	require.NoError(t, s.lead(c).Lead(s.Ctx, nothing), "and not the place")

	// Neither does runtime.Goexit, which a failed assertion in a test calls.
	gone := make(chan struct{})
	l = s.lead(c)
	go func() {
		defer close(gone)
		_ = l.Lead(s.Ctx, func(context.Context) error { runtime.Goexit(); return nil })
	}()
	get(s, gone)
	require.Empty(t, s.Queue())
}

// A context with the values of another one ends with the tenure and not at the other one's
// deadline, so it must not report that deadline: package context would rely on it and set no timers
// for child contexts.
func TestWithValuesHasNoDeadline(t *testing.T) {
	s := newEnv(t)
	l, err := s.candidate("v").Campaign(s.Ctx)
	require.NoError(t, err)
	of, cancel := context.WithTimeout(context.WithValue(s.Ctx, valueKey{}, "value"), time.Nanosecond)
	defer cancel()
	ctx := l.WithValues(of)
	require.Equal(t, "value", ctx.Value(valueKey{}))
	_, ok := ctx.Deadline()
	require.False(t, ok)
	require.NoError(t, ctx.Err())
	child, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	<-child.Done()
	require.NoError(t, l.Resign(s.Ctx))
	require.Error(t, ctx.Err())
	require.Nil(t, l.WithValues(nil).Value(valueKey{})) //nolint:staticcheck // nil on purpose
}

// revoked revokes a session's lease, and waits until the session has noticed that.
func (s *env) revoked(session *lease.Session) {
	s.T.Helper()
	require.NoError(s.T, etcdtest.Err(s.Admin.Revoke(s.Ctx, session.ID())))
	s.queued(0)
	session.Abandon()
	require.Error(s.T, session.Err())
}

// Protocol, step 6: the function's context has ended before any request is sent that allows another
// candidate to lead; it does not end a moment later, on another goroutine.
//
// Fails if the context is derived from the caller's and ended by AfterFunc.
func TestContextOfTheFunctionEndsBeforeTheKeyGoes(t *testing.T) {
	s := newEnv(t)
	c, g := s.gated("v")
	late := 0
	for range 50 { // a wrong result would occur only in some rounds
		l := s.lead(c)
		given := make(chan context.Context, 1)
		done := etcdtest.Go(func() error {
			return l.Lead(s.Ctx, func(ctx context.Context) error {
				given <- ctx
				<-ctx.Done()
				return nil
			})
		})
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

// Regression 7: if its context is cancelled while etcd is unavailable, Lead returns an error after
// about one time-out; the key is removed in the background.
//
// Fails if the resignation has no time limit: Lead then blocks until the session is lost.
func TestLeadCancelledWhileEtcdIsUnreachable(t *testing.T) {
	s := newEnv(t)
	host := etcdtest.Shared(t).Host(t)
	cli := host.Client(t)
	session := s.session(s.Admin) // with a TTL of ten minutes
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

// One lost request does not fail the resignation of a function that returned by itself: its caller
// has time.
//
// Fails if the resignation is always limited to one time-out.
func TestLeadResignsThoughARequestIsLost(t *testing.T) {
	s := newEnv(t)
	c, g := s.gated("v", func(cfg *election.Config) { cfg.Timeout = 200 * time.Millisecond })
	l := s.lead(c)
	require.NoError(t, l.Lead(s.Ctx, func(context.Context) error {
		g.on(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil)
		return nil
	}))
	require.Empty(t, s.Queue())
}

// Regression 49: a lead function of an earlier tenure never returns. The new tenure is given up
// after a while, so that another candidate leads.
//
// Fails if Lead waits for the mutex without a limit.
func TestStuckFunctionDoesNotKeepTheNextTenure(t *testing.T) {
	s := newEnv(t)
	turn := election.NewMutex()
	shared := func(cfg *election.Config) { cfg.Mutex, cfg.Drain = turn, 50*time.Millisecond }
	session := s.session(s.Admin)
	lost := s.lead(s.candidate("v", on(session), shared))
	stop, first := s.stubborn(lost)
	s.revoked(session)
	l := s.lead(s.candidate("v", shared))
	_, next, waits := s.waitingFor("next")
	get(s, waits)
	limit, cancel := context.WithTimeout(s.Ctx, patience/2)
	defer cancel()
	err := l.Lead(limit, func(context.Context) error { t.Error("two at once"); return nil })
	require.ErrorIs(t, err, eldest.ErrStuck, "it waits for its turn for ever")
	require.ErrorIs(t, l.Err(), eldest.ErrResigned)
	electiontest.Wins(t, next) // a healthy candidate leads
	close(stop)
	require.NoError(t, get(s, first))
}

// Two calls of Lead in one tenure run one after the other, however long the first one takes: it is
// not stuck, because its context has not ended.
//
// Fails if the wait for any function has a limit.
func TestLongFunctionOfTheSameTenureIsNotStuck(t *testing.T) {
	s := newEnv(t)
	l := s.lead(s.candidate("v", func(cfg *election.Config) { cfg.Drain = 10 * time.Millisecond }))
	stop, first := s.stubborn(l)
	second := etcdtest.Go(func() error { return l.Lead(s.Ctx, nothing) })
	select {
	case err := <-second:
		require.NoError(t, err, "it has ended its own tenure")
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, l.Err())
	close(stop)
	require.NoError(t, get(s, first))
	_ = get(s, second) // it ran, or returned because the first one resigned
}

// G7: after a lost session there is a new session and a new candidate. If the two candidates share
// a mutex, the new one waits for a function of the old one that ignores its context.
//
// Fails if each candidate has a mutex of its own.
func TestLeadNeverOverlapsOverSessions(t *testing.T) {
	s := newEnv(t)
	turn := election.NewMutex()
	shared := func(cfg *election.Config) { cfg.Mutex = turn }
	var running atomic.Int32
	stop, runs := make(chan struct{}), make(chan struct{}, 2)
	lead := func(context.Context) error { // ignores its context
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
	first := etcdtest.Go(func() error { return lost.Lead(s.Ctx, lead) })
	get(s, runs)
	s.revoked(session)

	// A tenure may end while it waits for the mutex.
	waits := s.lead(s.candidate("v", shared))
	second := etcdtest.Go(func() error { return waits.Lead(s.Ctx, lead) })
	require.NoError(t, waits.Resign(s.Ctx))
	require.ErrorIs(t, get(s, second), eldest.ErrResigned)

	next := s.lead(s.candidate("v", shared))
	third := etcdtest.Go(func() error { return next.Lead(s.Ctx, lead) })
	// A candidate with a mutex of its own does not wait, which proves that there was time.
	alone := s.candidate("v", func(cfg *election.Config) { cfg.Election += " other" })
	require.NoError(t, s.lead(alone).Lead(s.Ctx, nothing))
	require.Empty(t, runs)
	close(stop)
	require.NoError(t, get(s, first))
	get(s, runs)
	require.NoError(t, get(s, third))
}

// After a pause of the process several things may be true at once. Here the limit is over at once: no
// function is stuck if none runs, and the end of the tenure is a better reason.
//
// Fails, in some rounds, if the timer alone decides.
func TestStuckAmongOtherReasons(t *testing.T) {
	s := newEnv(t)
	at := func(cfg *election.Config) { cfg.Drain = time.Nanosecond }
	c := s.candidate("v", at)
	for range 20 {
		require.NoError(t, s.lead(c).Lead(s.Ctx, nothing))
	}
	turn := election.NewMutex()
	shared := func(cfg *election.Config) { cfg.Mutex = turn }
	stop, done := s.stubborn(s.lead(s.candidate("stubborn", shared, func(cfg *election.Config) { cfg.Election += "-2" })))
	c = s.candidate("w", shared, at)
	for range 20 {
		l := s.lead(c)
		require.NoError(t, l.Resign(s.Ctx))
		err := l.Lead(s.Ctx, nothing)
		require.ErrorIs(t, err, eldest.ErrResigned)
		require.NotErrorIs(t, err, eldest.ErrStuck)
	}
	close(stop)
	require.NoError(t, get(s, done))
}

// The context ends while the resignation is under way: Lead waits for its outcome for as long as if it
// had ended before.
//
// Fails if the resignation has failed as soon as the context ends.
func TestLeadCancelledDuringTheResignation(t *testing.T) {
	s := newEnv(t)
	c, g := s.gated("v")
	l := s.lead(c)
	ctx, cancel := context.WithCancel(s.Ctx)
	defer cancel()
	sending, release := g.stop()
	done := etcdtest.Go(func() error { return l.Lead(ctx, nothing) })
	get(s, sending)
	cancel()
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	require.NoError(t, get(s, done))
	require.Empty(t, s.Queue())
}
