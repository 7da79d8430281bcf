package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/retry"
)

const (
	// failoversPerTurn is how many leaders fail in one turn, each in an election of its own and at
	// its own moment: a failover is a wait for a lease, and many such waits can run at the same
	// time.
	failoversPerTurn = 8
	// apart is the minimum time over which these moments are spread. Otherwise failovers that take
	// milliseconds would wait for each other's processes on a machine with few CPUs.
	apart = 2 * time.Second
	// expiryScan is how often etcd scans for expired leases.
	expiryScan = 500 * time.Millisecond
)

// failover is a leader that is about to fail, on a host of its own, and its successor.
type failover struct {
	host   host
	leader *candidate
	won    <-chan outcome // of the successor
	// began is when the leader failed, lost when its user was notified (zero if the contender does
	// not notify), and succeeded when the successor won.
	began, lost, succeeded time.Time
	// held is the time at which the old leader's tenure last held, zero if its process was killed.
	held time.Time
}

// fault is what happens to the leaders of a regime.
type fault struct {
	regime string
	// among, if not nil, reports whether a contender takes part.
	among func(contender string) bool
	// host returns the host of the i-th leader of a turn.
	host func(t *turn, i int) host
	// inject makes the host fail. undo, which may be nil, reverses that after the successor's win.
	inject, undo func(ctx context.Context, h host) error
	// watched means that the old leader's process is asked when its tenure last held, instead of when its user was
	// notified.
	watched bool
	// lease means that only the lease's end replaces the leader, with every contender.
	lease bool
	// sample takes the samples of a failover.
	sample func(t *turn, f failover, ttl time.Duration)
}

// failovers measures each fault at each TTL.
func (r *run) failovers(faults ...fault) {
	var ttls []time.Duration
	for _, ttl := range r.options.TTLs {
		ttls = unique(append(ttls, r.granted(ttl)))
	}
	var points []point
	byRegime := map[string]fault{}
	for _, how := range faults {
		byRegime[how.regime] = how
		for _, ttl := range ttls {
			points = append(points, point{
				regime: how.regime, n: int(ttl.Milliseconds()), among: how.among,
				rounds:  (r.options.Rounds + failoversPerTurn - 1) / failoversPerTurn,
				timeout: turnTimeout + failoverTimeout(ttl),
			})
		}
	}
	waiters := r.hostsOf(1)
	r.measure(points, func(t *turn) {
		n := min(failoversPerTurn, r.options.Rounds-max(0, t.round)*failoversPerTurn) // in the last turn, perhaps fewer
		t.failAll(n, waiters, time.Duration(t.point.n)*time.Millisecond, byRegime[t.point.regime])
	})
}

// granted returns the TTL that the cluster grants for a requested TTL: at least as long as an
// election of its members takes.
func (r *run) granted(ttl time.Duration) time.Duration {
	lease := must(r.observer.Grant(r.ctx, int64(ttl/time.Second)))
	_, _ = r.observer.Revoke(r.ctx, lease.ID) // on an error it expires by itself
	return time.Duration(lease.TTL) * time.Second
}

// notices returns about how long the contender takes to notice the fault, and whether that is the
// time in which its lease expires.
func (t *turn) notices(how fault, ttl time.Duration) (pace time.Duration, lease bool) {
	if c, ok := must(contender.Named(t.contender)).(interface{ Notices() time.Duration }); ok && !how.lease {
		return c.Notices(), false
	}
	return ttl, true
}

// failAll runs a turn of n failovers. Each one that fails counts as one failed round.
func (t *turn) failAll(n int, waiters []host, ttl time.Duration, how fault) {
	t.share = n
	pace, _ := t.notices(how, ttl)
	all, errs := make([]failover, n), make([]error, n)
	for i := range all {
		// Spread in time: otherwise the leaders' timers would all be in step with each other and
		// with etcd's expiry scan, and eight samples would be worth one.
		t.sleep(rand.N(pace / failoversPerTurn))
		f := &all[i]
		f.host = how.host(t, i)
		f.leader, _, f.won = t.pair(f.host, waiters[i%len(waiters)], ttl)
		if how.watched {
			check(f.leader.watch(t.ctx))
		}
	}
	if how.undo != nil {
		// This is undone first: sessions cannot be closed while the fault lasts.
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
		running.Go(func() { errs[i] = all[i].run(bounded, pace, how) })
	}
	running.Wait()
	if !slices.Contains(errs, nil) {
		check(errs[0]) // this error counts for all of them
	}
	for i, f := range all {
		if errs[i] == nil {
			how.sample(t, f, ttl)
		} else {
			t.fail(errs[i], 1)
		}
	}
}

// run makes the leader fail and blocks until the successor leads and the old leader's user is
// notified, or the old leader's process has said when it last led.
//
// Before the leader fails it has renewed its lease, or sent a heartbeat, at least once. The time
// since then is random, over at least half the time in which a missing renewal is noticed: every
// contender renews that often (etcd's client every TTL/3, rounded up to half seconds, which is a
// second at a TTL of 2).
func (f *failover) run(ctx context.Context, pace time.Duration, how fault) error {
	if err := retry.Sleep(ctx, pace/3+rand.N(max(pace/2, apart))); err != nil {
		return err
	}
	if len(f.won) > 0 {
		return errors.Join(errors.New("the successor won before the leader failed"), (<-f.won).err)
	}
	var notified <-chan outcome
	if !how.watched {
		notified = start(ctx, f.leader.lost)
	}
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
	f.succeeded = o.at
	if how.watched {
		return f.overlap(ctx, how)
	}
	old := <-notified
	if f.lost = old.at; old.err != nil {
		return fmt.Errorf("the old leader was not notified: %w", old.err)
	}
	return nil
}

// goesOn is how long the old leader is observed after the successor's win, and after a stopped
// process was continued.
const goesOn = 200 * time.Millisecond

// overlap asks when the old leader's tenure last held. A process that was killed leads no more.
func (f *failover) overlap(ctx context.Context, how fault) (err error) {
	if how.undo == nil {
		return nil
	}
	if err := how.undo(ctx, f.host); err != nil {
		return err
	}
	if err := retry.Sleep(ctx, goesOn); err != nil {
		return err
	}
	f.held, err = f.leader.held(ctx)
	return err
}

// failoverTimeout is how long a failover may take once the successor is queued: about three times
// what etcd needs.
func failoverTimeout(ttl time.Duration) time.Duration { return 4*ttl + 10*time.Second }
