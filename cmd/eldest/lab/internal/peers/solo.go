package peers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// alone measures a turn.
func (t *turn) alone(ctx context.Context, measure func(t *turn, ctx context.Context) error) {
	if ctx.Err() != nil || t.results.lacking(t.site.system.Name, t.site.setting, t.scenario.Name) {
		return
	}
	t.progress(t)
	defer t.close()
	t.over(ctx, measure(t, ctx))
}

// crowded is the limit of what many candidates or observers do.
func crowded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, many, fmt.Errorf("not within %v", many))
}

// fanout measures until all observers are notified of a new leader.
func (t *turn) fanout(ctx context.Context) error {
	if err := t.setUp(ctx, false); err != nil {
		return err
	}
	observers, err := t.open(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := crowded(ctx)
	defer cancel()
	if _, err := observers.call(ctx, request{Do: doObserve, N: t.options.Size}); err != nil {
		return err
	}
	if _, err := observers.call(ctx, request{Do: doTold, Name: t.leader.id}); err != nil {
		return err
	}
	t.ready = time.Now().Add(settled)
	t.settle(ctx)
	if err := t.kept(time.Now()); err != nil {
		return err
	}
	r, err := t.leader.call(ctx, request{Do: doResign})
	if err != nil {
		return err
	}
	t.fault = timeOf(r.At)
	if _, err := t.successor(ctx); err != nil {
		return err
	}
	last, err := observers.call(ctx, request{Do: doTold, Name: t.waiter.id})
	if err != nil {
		return err
	}
	t.sample(Last, int64(timeOf(last.At).Sub(t.fault)))
	return nil
}

// crowd starts a leader, and a process that candidates join.
func (t *turn) crowd(ctx context.Context, do string) (reply, error) {
	if err := t.lead(ctx); err != nil {
		return reply{}, err
	}
	candidates, err := t.open(ctx)
	if err != nil {
		return reply{}, err
	}
	pause(ctx, settled)
	ctx, cancel := crowded(ctx)
	defer cancel()
	r, err := candidates.call(ctx, request{Do: do, N: t.options.Size})
	if lost := t.kept(time.Now()); lost != nil {
		return r, lost
	}
	return r, err
}

// join measures until all candidates are queued.
func (t *turn) join(ctx context.Context) error {
	r, err := t.crowd(ctx, doJoin)
	if err == nil {
		t.sample(All, int64(r.Took))
	}
	return err
}

// memory measures what a candidate that waits takes.
func (t *turn) memory(ctx context.Context) error {
	r, err := t.crowd(ctx, doMemory)
	if err == nil {
		t.sample(Bytes, r.N)
	}
	return err
}

// traffic is what two participants have sent, and their servers written.
type traffic struct {
	at                    time.Time
	requests, sent, write int64
	noWrites              error // why the servers' writes are unknown
}

// rest measures what a leader and a candidate that waits send while nothing happens.
func (t *turn) rest(ctx context.Context) error {
	if err := t.setUp(ctx, false); err != nil {
		return err
	}
	pause(ctx, 2*settled)
	t.settle(ctx)
	before, err := t.traffic(ctx)
	if err != nil {
		return err
	}
	pause(ctx, t.options.For)
	after, err := t.traffic(ctx)
	if err != nil {
		return err
	}
	if err := t.kept(time.Now()); err != nil {
		return err // a change is no rest
	}
	minute := func(n int64) int64 {
		return int64(float64(n) * float64(time.Minute) / float64(after.at.Sub(before.at)))
	}
	t.sample(Requests, minute(after.requests-before.requests))
	t.sample(Sent, minute(after.sent-before.sent))
	if err := errors.Join(before.noWrites, after.noWrites); err != nil {
		t.miss(Writes, err)
	} else {
		t.sample(Writes, minute(after.write-before.write))
	}
	return nil
}

func (t *turn) traffic(ctx context.Context) (sum traffic, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settingUp, fmt.Errorf("not within %v", settingUp))
	defer cancel()
	for _, p := range []*participant{t.leader, t.waiter} {
		r, err := p.call(ctx, request{Do: doCounts})
		if err != nil {
			return sum, err
		}
		sum.requests += r.Writes
		sum.sent += r.Bytes
	}
	sum.at = time.Now()
	sum.write, sum.noWrites = t.site.servers.Writes(ctx)
	return sum, nil
}
