package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/internal/retry"
)

const (
	// failoversPerTurn is how many leaders fail in one turn, each in an election of its own and at a
	// moment of its own: a failover is a wait for a lease, and many can be waited for at a time.
	failoversPerTurn = 8
	// expiryScan is how often etcd looks for leases that have expired.
	expiryScan = 500 * time.Millisecond
)

// failover is a leader that is about to fail, on a host of its own, and its successor.
type failover struct {
	host   host
	leader *candidate
	won    <-chan outcome // of the successor
	// began is when the leader failed, lost when its user was notified, zero if the contender
	// notifies nobody, and succeeded when the successor won.
	began, lost, succeeded time.Time
}

// fault is what happens to the leaders of a scenario.
type fault struct {
	regime string
	// host returns the host of the i-th leader of a turn.
	host func(t *turn, i int) host
	// inject makes the host fail, undo, which may be nil, undoes that.
	inject, undo func(ctx context.Context, h host) error
	// deadly says that the leader's user does not live on, to be notified of the loss.
	deadly bool
	// sample takes the samples of a failover.
	sample func(t *turn, f failover, ttl time.Duration)
}

// failovers measures at each TTL.
func (r *run) failovers(how fault) {
	var ttls []time.Duration
	for _, ttl := range r.options.TTLs {
		ttls = unique(append(ttls, r.granted(ttl)))
	}
	var points []point
	for _, ttl := range ttls {
		points = append(points, point{
			regime: how.regime, n: int(ttl.Milliseconds()),
			rounds:  (r.options.Rounds + failoversPerTurn - 1) / failoversPerTurn,
			timeout: turnTimeout + failoverTimeout(ttl),
		})
	}
	waiters := r.hostsOf(1)
	r.measure(points, func(t *turn) {
		n := min(failoversPerTurn, r.options.Rounds-max(0, t.round)*failoversPerTurn) // in the last turn, perhaps fewer
		t.failAll(n, waiters, time.Duration(t.point.n)*time.Millisecond, how)
	})
}

// granted is the TTL that the cluster grants to a request for this one: no less than an election of its
// members takes.
func (r *run) granted(ttl time.Duration) time.Duration {
	lease := must(r.observer.Grant(r.ctx, int64(ttl/time.Second)))
	_, _ = r.observer.Revoke(r.ctx, lease.ID) // it expires by itself
	return time.Duration(lease.TTL) * time.Second
}

// failAll is a turn of n failovers. One that fails is counted by itself.
func (t *turn) failAll(n int, waiters []host, ttl time.Duration, how fault) {
	t.share = n
	all, errs := make([]failover, n), make([]error, n)
	for i := range all {
		// Apart, or the leaders' timers would all be in step with each other and with
		// etcd's expiry scan, and eight samples would be worth one.
		t.sleep(rand.N(ttl / failoversPerTurn))
		all[i].host = how.host(t, i)
		all[i].leader, _, all[i].won = t.pair(all[i].host, waiters[i%len(waiters)], ttl)
	}
	if how.undo != nil {
		// First of all: sessions cannot be closed while the fault lasts.
		t.after(func(ctx context.Context) {
			for _, f := range all {
				_ = how.undo(ctx, f.host)
			}
		})
	}
	bounded, cancel := context.WithTimeout(t.ctx, failoverTimeout(ttl))
	defer cancel()
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() { errs[i] = all[i].run(bounded, ttl, how) })
	}
	running.Wait()
	if !slices.Contains(errs, nil) {
		check(errs[0]) // which counts for all of them
	}
	for i, f := range all {
		if errs[i] == nil {
			how.sample(t, f, ttl)
		} else {
			t.fail(errs[i], 1)
		}
	}
}

// run has the leader fail and blocks until the successor leads and the old leader's user is notified.
//
// When the leader fails it has renewed at least once, and how long ago that was is
// random, over half a TTL: every contender renews at least that often (etcd's
// client every TTL/3, rounded up to half seconds, which is a second at a TTL of 2).
func (f *failover) run(ctx context.Context, ttl time.Duration, how fault) error {
	if err := retry.Sleep(ctx, ttl/3+rand.N(ttl/2)); err != nil {
		return err
	}
	if len(f.won) > 0 {
		return errors.Join(errors.New("the successor won before the leader failed"), (<-f.won).err)
	}
	f.leader.notifies = f.leader.notifies && !how.deadly
	notified := start(ctx, f.leader.lost)
	f.began = time.Now()
	if err := how.inject(ctx, f.host); err != nil {
		return err
	}
	var o outcome
	select {
	case o = <-f.won:
	case <-ctx.Done():
		o.err = context.Cause(ctx)
	}
	if o.err != nil {
		return fmt.Errorf("the successor: %w", o.err)
	}
	old := <-notified
	if old.err != nil {
		return fmt.Errorf("the old leader was not notified: %w", old.err)
	}
	f.succeeded, f.lost = o.at, old.at
	return nil
}

// failoverTimeout is how long a failover may take, after the successor was queued: some three
// times what etcd needs.
func failoverTimeout(ttl time.Duration) time.Duration { return 4*ttl + 10*time.Second }
