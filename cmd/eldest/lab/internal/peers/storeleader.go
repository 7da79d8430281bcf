package peers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// moving is how long after the store is available again a change of the election's leader still counts.
const moving = 2 * time.Second

// storeLeader kills the store's own leader while the election's leader appends entries.
func (t *turn) storeLeader(ctx context.Context) error {
	if err := t.setUp(ctx, true); err != nil {
		return err
	}
	if _, err := t.leader.call(ctx, request{Do: doAppend}); err != nil {
		return err
	}
	for range 2 { // two entries at least, so that the connections are open
		if _, err := t.accepted(ctx, firstEntry, time.Now(), t.leader); err != nil {
			return fmt.Errorf("before the kill: %w", err)
		}
	}
	t.settle(ctx)
	if err := t.kept(time.Now()); err != nil {
		return err
	}

	killing, cancel := context.WithTimeout(ctx, settingUp)
	killed, restart, err := t.site.servers.KillLeader(killing)
	cancel()
	if err != nil {
		return err
	}
	t.fault = killed
	again, err := t.accepted(ctx, t.site.limit(), t.fault, t.leader, t.waiter)
	if lost := t.kept(t.fault); lost != nil {
		err = lost
	}
	if err == nil {
		t.sample(Unavailable, int64(again.Sub(t.fault)))
		pause(ctx, moving)
		_, moved := t.waiter.heard(evWon)
		t.flag(Moved, moved)
	}
	restarting, cancel := context.WithTimeout(context.WithoutCancel(ctx), starting)
	defer cancel()
	if failed := restart(restarting); failed != nil {
		t.site.die(fmt.Errorf("it does not start again after it was killed: %w", failed))
	}
	return err
}

// accepted waits until the store has accepted an entry of one of the participants that was appended after a
// time, and returns when. It returns an error that wraps errLimit when the limit has passed.
func (t *turn) accepted(ctx context.Context, limit time.Duration, after time.Time, by ...*participant) (time.Time, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, after.Add(limit), errLimit)
	defer cancel()
	type result struct {
		at  time.Time
		err error
	}
	results := make(chan result, len(by))
	for _, p := range by {
		go func() {
			if _, err := p.await(ctx, evWon); err != nil {
				results <- result{err: err}
				return
			}
			r, err := p.call(ctx, request{Do: doAccepted, At: nanos(after)})
			results <- result{timeOf(r.At), err}
		}()
	}
	var failed error // one that is not the limit has a cause
	for range by {
		r := <-results
		if r.err == nil {
			return r.at, nil // the others end with ctx
		}
		if failed == nil || errors.Is(failed, errLimit) {
			failed = r.err
		}
	}
	return time.Time{}, failed
}
