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
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// alone counts how often a lead function overlaps with itself.
type alone struct{ running, overlaps atomic.Int32 }

func (a *alone) enter() func() {
	if a.running.Add(1) > 1 {
		a.overlaps.Add(1)
	}
	return func() { a.running.Add(-1) }
}

// stuckLogger blocks in each line.
type stuckLogger struct {
	*journal
	blocked <-chan struct{}
}

func (l stuckLogger) Handle(ctx context.Context, r slog.Record) error {
	<-l.blocked
	return l.journal.Handle(ctx, r)
}

// Row 33, in the loop. The lead function takes long, the log blocks, and meanwhile the tenure is
// lost. In other implementations the lease is not renewed while the function runs, or the loop
// continues and the function runs a second time concurrently. In Eldest renewals continue for many
// TTLs, and the next tenure begins when the function has returned.
//
// Fails when elector's round calls the lead function on the goroutine that renews, or begins the
// next round without waiting for it.
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
		cfg.Logger = slog.New(stuckLogger{&journal{}, blocked})
		cfg.Backoff = func(int) time.Duration { return time.Millisecond }
		cfg.Drain = 50 * time.Millisecond // bounds the wait at the end of Run, not the wait after a loss
	})
	t.Cleanup(func() { close(blocked) })
	l := etcdtest.Take(t, n.won, "the win")
	etcdtest.Eventually(t, func() bool { return rec.Count("LeaseKeepAlive") >= 2*eagerness }, "renewals for two TTLs")
	require.NoError(t, l.Err(), "the lease was lost beside a function that takes long")
	require.Equal(t, elector.Leading, n.Status().Role())

	require.NoError(t, etcdtest.Err(c.Client(t).Delete(etcdtest.Context(t), l.Key())))
	etcdtest.Take(t, l.Done(), "the end of the tenure")
	require.ErrorIs(t, n.becomes(t, elector.Unknown).Reason(), eldest.ErrDeposed)
	next := stand(t, c.Client(t), name, "next", untilTheEnd)
	etcdtest.Take(t, next.won, "the successor's win") // the key is deleted: the successor does not wait for the function
	_ = next.end(t)
	etcdtest.Never(t, func() bool { return len(n.won) > 0 || len(queueOf(t, c, name)) > 0 }, 500*time.Millisecond,
		"it stands although it cannot serve")
	require.Empty(t, ends)
	close(long)
	etcdtest.Take(t, ends, "the end of the function")
	again := etcdtest.Take(t, n.won, "the win of a second tenure")
	require.Greater(t, again.Token(), l.Token())
	require.Zero(t, a.overlaps.Load(), "the lead function ran beside itself")
}

// Row 34. The lead function ignores the end of its context. In other implementations the key is
// deleted while it runs, and two functions lead. In Eldest the key is kept, and the lease renewed,
// until it returns.
//
// Fails when elector's round leaves the election without waiting first.
func TestRegression34_KeyIsKeptUntilTheFunctionReturns(t *testing.T) {
	t.Parallel()
	var a alone
	old, next, release := ignorant(t, &a, time.Minute)
	l := etcdtest.Take(t, old.won, "the win")
	next.follows(t, old, l.Token())
	stopped := time.Now()
	old.stop()
	old.becomes(t, elector.Unknown)
	require.Less(t, time.Since(stopped), atOnce)
	// Longer than the TTL.
	etcdtest.Never(t, func() bool { return len(next.won) > 0 || l.Err() != nil }, ignorantTTL+time.Second,
		"the key was given back while the function ran")
	next.follows(t, old, l.Token())
	release()
	released := time.Now()
	etcdtest.Take(t, next.won, "the successor's win")
	require.Less(t, time.Since(released), atOnce)
	require.Zero(t, a.overlaps.Load(), "the lead function ran beside itself")
	require.NotErrorIs(t, old.end(t), eldest.ErrStuck)
}

// Row 34, and the function takes longer than Config.Drain: the lease is left to its deadline, and
// that is logged. Then two functions run: this cannot be prevented, but it is reported.
//
// Fails when elector's round renews for ever, or deletes the key while the function runs.
func TestRegression34_LeaseIsLeftToItsDeadline(t *testing.T) {
	t.Parallel()
	const drain = 500 * time.Millisecond
	var a alone
	old, next, _ := ignorant(t, &a, drain)
	l := etcdtest.Take(t, old.won, "the win")
	next.follows(t, old, l.Token())
	stopped := time.Now()
	old.stop()
	old.becomes(t, elector.Unknown) // before the wait for the function
	second := etcdtest.Take(t, next.won, "the successor's win")
	took := time.Since(stopped)
	require.GreaterOrEqual(t, took, drain, "the key was given back while the function ran")
	require.Less(t, took, drain+ignorantTTL+2*atOnce, "the lease is renewed for ever")
	require.Greater(t, second.Token(), l.Token())
	require.Error(t, l.Err(), "its tenure goes on beside the successor's")
	require.ErrorIs(t, old.end(t), eldest.ErrStuck)
	require.ErrorIs(t, old.end(t), context.Canceled)
	etcdtest.Eventually(t, func() bool {
		return old.log.says("ERROR lead function ignores its context") && old.log.says("lease left to expire")
	}, "it is logged")
	etcdtest.Eventually(t, func() bool { return a.overlaps.Load() == 1 }, "INVALID: the function has returned")
}

// ignorantTTL is the TTL of a node whose lead function ignores its context: longer than atOnce, so
// that a test can distinguish a key that is deleted from one that expires.
const ignorantTTL = 8 * time.Second

// ignorant starts a node whose lead function ignores its context until release is called, or the
// test ends, and a node that waits behind it.
func ignorant(t *testing.T, a *alone, drain time.Duration) (old, next *node, release func()) {
	t.Helper()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	ignoring, returned := make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(ignoring) })
	t.Cleanup(func() {
		release()
		<-returned
	})
	old = stand(t, c.Client(t), name, "old", func(context.Context, *elector.Leadership) error {
		defer close(returned)
		defer a.enter()()
		<-ignoring
		return nil
	}, lasting(ignorantTTL), func(cfg *elector.Config) { cfg.Drain = drain })
	old.becomes(t, elector.Leading)
	next = stand(t, c.Client(t), name, "next", func(ctx context.Context, l *elector.Leadership) error {
		defer a.enter()()
		return untilTheEnd(ctx, l)
	})
	return old, next, release
}

// Row 34, and etcd cannot be reached either. The deadline passes: the key is deleted with the
// lease, whatever the function does, and the successor's tenure begins after the function's context
// has ended.
//
// Fails when the lease is renewed past the deadline, or the loss waits for the function first.
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
	l := etcdtest.Take(t, old.won, "the win")
	began := make(chan time.Time, 1)
	next := stand(t, c.Client(t), name, "next", func(ctx context.Context, l *elector.Leadership) error {
		began <- time.Now()
		return untilTheEnd(ctx, l)
	})
	next.follows(t, old, l.Token())
	host.Cut()
	t.Cleanup(host.Mend)
	start := etcdtest.Take(t, began, "the successor's lead function")
	require.False(t, etcdtest.Take(t, ended, "the end of the context").After(start), "two leading contexts")
	require.ErrorIs(t, l.Err(), eldest.ErrSessionLost)
	require.Equal(t, elector.Unknown, old.Status().Role())
	require.Positive(t, host.Stats().Dropped.Inbound, "INVALID: nothing was cut")
	host.Mend()
	etcdtest.Never(t, func() bool { return len(queueOf(t, c, name)) > 1 }, 300*time.Millisecond,
		"it stands although it cannot serve")
	close(ignoring)
	old.follows(t, next, etcdtest.Take(t, next.won, "its tenure").Token())
}
