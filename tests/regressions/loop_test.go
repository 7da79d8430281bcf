package regressions

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// alone counts how often a lead function runs beside itself.
type alone struct{ running, overlaps atomic.Int32 }

func (a *alone) enter() func() {
	if a.running.Add(1) > 1 {
		a.overlaps.Add(1)
	}
	return func() { a.running.Add(-1) }
}

// stuckLogger blocks in each line.
type stuckLogger struct {
	slog.Handler
	blocked <-chan struct{}
}

func (l stuckLogger) Handle(ctx context.Context, r slog.Record) error {
	<-l.blocked
	return l.Handler.Handle(ctx, r)
}

// Row 33, in the loop. The lead function takes long, the log blocks, and the tenure is
// taken away meanwhile. Elsewhere the lease is not renewed while the function runs, or
// the loop goes on and the function runs a second time beside itself. Here renewals go
// on for many TTLs, and the next tenure begins when the function has returned.
//
// Fails when elector's round calls the lead function on the goroutine that renews, or
// begins the next round without waiting for it.
func TestRegression33_LongLeadFunctionInTheLoop(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	var rec etcdtest.Recorder
	var a alone
	long, blocked := make(chan struct{}), make(chan struct{})
	ends := make(chan struct{}, 1024)
	n := stand(t, c.Client(t, rec.Attach), name, "n", func(ctx context.Context, l *elector.Leadership) error {
		defer a.enter()()
		select {
		case <-long:
			<-ctx.Done()
		case <-time.After(4 * etcdtest.Patience):
		}
		ends <- struct{}{}
		return nil
	}, lasting(5*time.Second), func(cfg *elector.Config) {
		cfg.Session.Renewal = eager
		cfg.Logger = slog.New(stuckLogger{&electiontest.Journal{}, blocked})
		cfg.Backoff = func(int) time.Duration { return time.Millisecond }
		cfg.Drain = 50 * time.Millisecond // which bounds the wait of an end of Run, not of a loss
	})
	t.Cleanup(func() { close(blocked) })
	l := n.Wins(t)
	etcdtest.Eventually(t, func() bool { return rec.Count("LeaseKeepAlive") >= 2*eagerness }, "renewals for two TTLs")
	require.NoError(t, l.Err(), "the lease was lost beside a function that takes long")
	require.Equal(t, elector.Leading, n.Status().Role())

	require.NoError(t, etcdtest.Err(c.Client(t).Delete(etcdtest.Context(t), l.Key())))
	etcdtest.Take(t, l.Done(), "the end of the tenure")
	require.ErrorIs(t, n.Becomes(t, elector.Neither).Reason(), eldest.ErrDeposed)
	next := stand(t, c.Client(t), name, "next", electiontest.UntilTheEnd)
	next.Wins(t) // the key is gone: nobody waits for the function
	_ = next.End(t)
	etcdtest.Never(t, func() bool { return len(n.Won) > 0 || len(queueOf(t, c, name)) > 0 }, 500*time.Millisecond,
		"it stands although it cannot serve")
	require.Empty(t, ends)
	close(long)
	etcdtest.Take(t, ends, "the end of the function")
	again := n.Wins(t)
	require.Greater(t, again.Token(), l.Token())
	require.Zero(t, a.overlaps.Load(), "the lead function ran beside itself")
}

// Row 34, and etcd cannot be reached either. The deadline passes: the key goes with the
// lease, whatever the function does, and the successor's tenure begins after the
// function's context has ended.
//
// Fails when something renews past the deadline, or waits for the function first.
func TestRegression34_DeadlineBeforeTheFunctionReturns(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	host := c.Host(t)
	ignoring, ended := make(chan struct{}), make(chan time.Time, 1)
	old := stand(t, host.Client(t), name, "old", func(ctx context.Context, _ *elector.Leadership) error {
		<-ctx.Done()
		ended <- time.Now()
		select {
		case <-ignoring:
		case <-time.After(etcdtest.Patience):
		}
		return nil
	}, lasting(10*time.Second), func(cfg *elector.Config) { cfg.Drain = time.Minute })
	l := old.Wins(t)
	began := make(chan time.Time, 1)
	next := stand(t, c.Client(t), name, "next", func(ctx context.Context, l *elector.Leadership) error {
		began <- time.Now()
		return electiontest.UntilTheEnd(ctx, l)
	})
	next.Follows(t, old.ID, l.Token())
	host.Cut()
	t.Cleanup(host.Mend)
	start := etcdtest.Take(t, began, "the successor's lead function")
	require.False(t, etcdtest.Take(t, ended, "the end of the context").After(start), "two leading contexts")
	require.ErrorIs(t, l.Err(), eldest.ErrSessionLost)
	require.Equal(t, elector.Neither, old.Status().Role())
	require.Positive(t, host.Stats().Dropped.Inbound, "INVALID: nothing was cut")
	host.Mend()
	etcdtest.Never(t, func() bool { return len(queueOf(t, c, name)) > 1 }, 300*time.Millisecond,
		"it stands although it cannot serve")
	close(ignoring)
	old.Follows(t, next.ID, next.Wins(t).Token())
}

// Row 33. The lead function takes long, and callbacks block. Elsewhere they run on the
// goroutine that renews: the lease is lost, and the function runs a second time beside
// itself. Here renewals go on for many TTLs, and it runs once.
//
// Fails when hooks are called by lease.Session.renew itself, or when Lead does not wait
// for an earlier function.
func TestRegression33_LongLeadFunctionAndCallbacks(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	var rec etcdtest.Recorder
	blocked := make(chan struct{})
	block, release := func() { <-blocked }, sync.OnceFunc(func() { close(blocked) })
	p := join(t, c.Client(t, rec.Attach), name, func(l *lease.Config, e *election.Config) {
		// Long enough for a busy machine not to cost it the lease, and renewed often.
		l.TTL, l.Renewal = 5*time.Second, eager
		l.Hooks.Renewed = func(lease.RenewedEvent) { block() }
		l.Hooks.Jeopardy = func(lease.JeopardyEvent) { block() }
		e.Hooks.Registered = func(election.RegisteredEvent) { block() }
		e.Hooks.Won = func(election.WonEvent) { block() }
	})
	next := join(t, c.Client(t), name)
	var running, calls, overlaps atomic.Int32
	t.Cleanup(release) // before anybody leaves
	leader := electiontest.Wins(t, p.Campaign(etcdtest.Context(t))).Leadership
	result := next.Queue(t)
	started, long := make(chan struct{}), make(chan struct{})
	done := make(chan error, 2)
	f := func(ctx context.Context) error {
		if running.Add(1) > 1 {
			overlaps.Add(1)
		}
		defer running.Add(-1)
		if calls.Add(1) == 1 {
			close(started)
		}
		<-long
		return ctx.Err()
	}
	for range 2 { // the second call comes while the first one runs
		go func() { done <- leader.Lead(etcdtest.Context(t), f) }()
	}
	etcdtest.Take(t, started, "the lead function")
	etcdtest.Eventually(t, func() bool { return rec.Count("LeaseKeepAlive") >= 3*eagerness }, "renewals for several TTLs")
	require.NoError(t, leader.Err(), "the lease was lost beside a function that takes long")
	require.True(t, leader.Holds(0))
	require.Empty(t, result)
	close(long)
	// The one that ran, and the other one, which may have been told first.
	ended := []error{etcdtest.Take(t, done, "a lead function"), etcdtest.Take(t, done, "the other one")}
	require.Contains(t, ended, error(nil), "neither ran: %v", ended)
	electiontest.Wins(t, result)
	require.Zero(t, overlaps.Load(), "the lead function ran beside itself")
	require.ErrorIs(t, leader.Err(), eldest.ErrResigned)
	release()
}
