package regressions

import (
	"context"
	"sync"
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

// Row 33. The lead function takes long, and callbacks block. In other implementations they run on
// the goroutine that renews: the lease is lost, and the function runs a second time concurrently.
// In Eldest renewals continue for many TTLs, and the function runs once.
//
// Fails when hooks are called on the goroutine that renews, or when Lead does not wait for an
// earlier function.
func TestRegression33_LongLeadFunctionAndCallbacks(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	var rec etcdtest.Recorder
	blocked := make(chan struct{})
	block, release := func() { <-blocked }, sync.OnceFunc(func() { close(blocked) })
	p := join(t, c.Client(t, rec.Attach), name, func(l *lease.Config, e *election.Config) {
		// The TTL is long enough that a busy machine does not cost it the lease; renewals are
		// frequent.
		l.TTL, l.Renewal = 5*time.Second, eager
		l.Hooks.Renewed = func(lease.RenewedEvent) { block() }
		l.Hooks.AtRisk = func(lease.AtRiskEvent) { block() }
		e.Hooks.Registered = func(election.RegisteredEvent) { block() }
		e.Hooks.Won = func(election.WonEvent) { block() }
	})
	next := join(t, c.Client(t), name)
	var running, calls, overlaps atomic.Int32
	t.Cleanup(release) // before the participants leave
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
	// The result of the call that ran, and of the other one, which may have returned first.
	ended := []error{etcdtest.Take(t, done, "a lead function"), etcdtest.Take(t, done, "the other one")}
	require.Contains(t, ended, error(nil), "neither ran: %v", ended)
	electiontest.Wins(t, result)
	require.Zero(t, overlaps.Load(), "the lead function ran beside itself")
	require.ErrorIs(t, leader.Err(), eldest.ErrResigned)
	release()
}
