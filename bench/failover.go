package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/eldest-io/eldest/internal/retry"
)

// sideBySide is how many leaders fail in one turn, each in an election of its own and at a
// moment of its own: a failover is a wait for a lease, and leases can run out side by
// side.
const sideBySide = 8

// errTooSoon is for a round whose leader was lost before anything was done to it.
var errTooSoon = errors.New("the successor won before the leader failed")

// failover is a leader that is about to fail, on a host of its own, and its successor.
type failover struct {
	host   Host
	leader Candidate
	// won is the successor's.
	won <-chan outcome
	// began is when the leader failed, lost when its user was told, zero if nobody
	// ever is, and succeeded when the successor won.
	began, lost, succeeded time.Time
	err                    error
}

// failing is what befalls the leaders of a scenario.
type failing struct {
	// regime is what it is called.
	regime string
	// host returns the host of the i-th leader of a turn.
	host func(ctx context.Context, t *turn, i int) (Host, error)
	// strike makes the host fail, mend undoes that; nil if it cannot be.
	strike, mend func(ctx context.Context, h Host) error
	// told says whether the leader's user lives on, and may be told of the loss.
	told bool
	// note takes the samples of a failover that came to its end.
	note func(t *turn, f failover, ttl time.Duration)
}

// failovers measures at each TTL.
func (r *run) failovers(ctx context.Context, how failing) error {
	var ttls []time.Duration
	for _, ttl := range r.options.TTLs {
		// Less than an election of its members takes, etcd does not grant.
		granted, err := r.granted(ctx, ttl)
		if err != nil {
			return err
		}
		ttls = append(ttls, granted)
	}
	ttls = each(ttls)
	var points []point
	for _, ttl := range ttls {
		points = append(points, point{
			regime: how.regime, n: int(ttl.Milliseconds()),
			rounds:  (r.options.Rounds + sideBySide - 1) / sideBySide,
			timeout: turnTimeout + patience(ttl),
		})
	}
	r.plan(points)
	waiters, err := r.hostsOf(ctx, max(r.options.Processes, 1))
	if err != nil {
		return err
	}
	for i, ttl := range ttls {
		left := map[string]int{} // rounds, by contender
		for _, name := range r.options.Contenders {
			left[name] = r.options.Rounds
		}
		err := r.interleave(ctx, points[i], func(ctx context.Context, t *turn) error {
			n := min(sideBySide, left[t.contender])
			if !t.warm {
				left[t.contender] -= n
			}
			return t.failSideBySide(ctx, n, waiters, ttl, how)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// granted is the TTL that the cluster grants to who asks for this one.
func (r *run) granted(ctx context.Context, ttl time.Duration) (time.Duration, error) {
	lease, err := r.judge.Grant(ctx, int64(ttl/time.Second))
	if err != nil {
		return 0, fmt.Errorf("asking for a lease of %v: %w", ttl, err)
	}
	_, _ = r.judge.Revoke(ctx, lease.ID) // it runs out by itself
	return time.Duration(lease.TTL) * time.Second, nil
}

// failSideBySide is a turn. A failover that fails is counted by itself.
func (t *turn) failSideBySide(ctx context.Context, n int, waiters []Host, ttl time.Duration, how failing) error {
	t.share = n
	all := make([]failover, n)
	for i := range all {
		// Apart, or the leaders' timers would all stand alike to each other and to
		// etcd's expiry scan, and eight samples would be worth one.
		if err := retry.Sleep(ctx, rand.N(ttl/sideBySide)); err != nil {
			return err
		}
		h, err := how.host(ctx, t, i)
		if err != nil {
			return err
		}
		if all[i], err = t.prepare(ctx, h, waiters[i%len(waiters)], ttl); err != nil {
			return err
		}
	}
	if how.mend != nil {
		// The first thing afterwards: sessions cannot be closed on a network that
		// is away.
		t.after(func(ctx context.Context) {
			for _, f := range all {
				_ = how.mend(ctx, f.host)
			}
		})
	}
	bounded, cancel := context.WithTimeout(ctx, patience(ttl))
	defer cancel()
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() { all[i].err = all[i].run(bounded, ttl, how) })
	}
	running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	failed := 0
	for _, f := range all {
		if f.err != nil {
			failed++
			continue
		}
		how.note(t, f, ttl)
	}
	for _, f := range all {
		switch {
		case f.err == nil:
		case failed == n:
			return f.err // which counts for all of them
		default:
			t.fail(f.err, 1)
		}
	}
	return nil
}

// prepare has a candidate lead on one host, and its successor queue on another.
func (t *turn) prepare(ctx context.Context, on, waiters Host, ttl time.Duration) (f failover, err error) {
	f.host = on
	election := t.election()
	if f.leader, err = t.candidate(ctx, on, election, ttl); err != nil {
		return f, err
	}
	second, err := t.candidate(ctx, waiters, election, ttl)
	if err != nil {
		return f, err
	}
	queue, err := t.watchOver(ctx, election)
	if err != nil {
		return f, err
	}
	if _, err := lead(ctx, f.leader); err != nil {
		return f, err
	}
	f.won = campaign(ctx, second)
	return f, queue.queue(ctx, 2)
}

// run has the leader fail and blocks until the successor leads and, where somebody
// tells, the leader knows.
//
// When the leader fails it has renewed at least once, and how long ago that was is left
// to chance. The chance is over half a TTL, which is no less than anybody's cycle: etcd's
// client renews every TTL/3, rounded up to half seconds, which is a second at a TTL of 2.
func (f *failover) run(ctx context.Context, ttl time.Duration, how failing) error {
	var lost <-chan time.Time
	if how.told {
		lost = f.leader.Lost()
	}
	if err := retry.Sleep(ctx, ttl/3+rand.N(ttl/2)); err != nil {
		return err
	}
	select {
	case o := <-f.won:
		return errors.Join(errTooSoon, o.err)
	default:
	}
	f.began = time.Now()
	if err := how.strike(ctx, f.host); err != nil {
		return err
	}
	select {
	case o := <-f.won:
		if f.succeeded = o.at; o.err != nil {
			return fmt.Errorf("the successor: %w", o.err)
		}
	case <-ctx.Done():
		return fmt.Errorf("the successor has not won: %w", context.Cause(ctx))
	}
	if lost == nil {
		return nil
	}
	select {
	case f.lost = <-lost:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the old leader was not told: %w", context.Cause(ctx))
	}
}

// patience is how long a failover may take, from the queue's being complete: some three
// times what etcd needs.
func patience(ttl time.Duration) time.Duration { return 4*ttl + 10*time.Second }

// expiryScan is how often etcd looks for leases that have run out.
const expiryScan = 500 * time.Millisecond
