package peers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// exclusive is how long after a fault no other takes place, unless the successor has won.
	exclusive = 300 * time.Millisecond
	// exclusiveHandover is longer, because a change without a fault needs no lease to expire.
	exclusiveHandover = time.Second
	// restoring is how long after the successor's win the old leader is continued, or has its network again;
	// watching how long it is watched from then on.
	restoring = 100 * time.Millisecond
	watching  = 500 * time.Millisecond
	// firstEntry is how long a leader's first entry may take.
	firstEntry = 10 * time.Second
	// ceasing is how long participants may take to answer that they append no more.
	ceasing = time.Second
)

// together measures turns in which a leader is replaced: they are set up at the same time, the faults take
// place one after the other, and what is waited for after that overlaps.
func (r *run) together(ctx context.Context, turns []*turn) {
	inParallel(len(turns), func(i int) {
		t := turns[i]
		if ctx.Err() == nil {
			t.err = t.setUp(ctx, t.twoLeaders())
		}
	})
	var waiting sync.WaitGroup
	for _, t := range turns {
		r.progress(t)
		if t.err == nil && ctx.Err() == nil {
			t.settle(ctx)
			t.err = t.steady(ctx)
		}
		if t.err == nil && ctx.Err() == nil {
			t.err = t.strike(ctx)
		}
		if t.err != nil || ctx.Err() != nil {
			t.over(ctx, t.err)
			t.cease(ctx)
			continue
		}
		waiting.Go(func() {
			t.over(ctx, t.replaced(ctx))
			t.cease(ctx)
		})
		alone := exclusive
		if t.scenario.Name == Handover {
			alone = exclusiveHandover
		}
		quiet, cancel := context.WithDeadline(ctx, t.fault.Add(alone))
		_, _ = t.waiter.await(quiet, evWon) // replaced reports its error
		cancel()
	}
	waiting.Wait()
	var closing sync.WaitGroup
	for _, t := range turns {
		closing.Go(t.close)
	}
	closing.Wait()
}

// twoLeaders reports whether the scenario may have two leaders: the old one remains.
func (t *turn) twoLeaders() bool { return t.scenario.Name == Stop || t.scenario.Name == Cut }

// cease ends the appending, which would disturb other turns.
func (t *turn) cease(ctx context.Context) {
	if !t.twoLeaders() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ceasing)
	defer cancel()
	for _, p := range t.all {
		_, _ = p.call(ctx, request{Do: doCease}) // a process that is still stopped, or has ended, appends nothing
	}
}

// steady makes sure that the leader still leads. While many turns are set up, the processors are so busy that
// short timeouts may pass; then the turn is set up again, alone. If the leader loses its leadership even then,
// that is an error.
func (t *turn) steady(ctx context.Context) error {
	for again := false; ; again = true {
		if lost := t.kept(time.Now()); lost == nil || again {
			return lost
		}
		t.close()
		t.all, t.election = nil, t.nextElection(t.scenario)
		if err := t.setUp(ctx, t.twoLeaders()); err != nil {
			return err
		}
		t.settle(ctx)
	}
}

// strike makes the fault take place, or the leader resign.
func (t *turn) strike(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settingUp, fmt.Errorf("not within %v", settingUp))
	defer cancel()
	if t.twoLeaders() {
		if _, err := t.leader.call(ctx, request{Do: doAppend}); err != nil {
			return err
		}
		if err := t.appended(ctx, t.leader); err != nil {
			return err
		}
	}
	switch t.scenario.Name {
	case Handover:
		r, err := t.leader.call(ctx, request{Do: doResign})
		t.fault = timeOf(r.At)
		return err
	case Crash:
		t.fault = time.Now()
		t.leader.kill()
		return nil
	case Machine:
		var err error
		t.fault, err = t.leader.fail(ctx)
		return err
	case Stop:
		t.fault = time.Now()
		return t.leader.process.Suspend()
	default: // Cut
		r, err := t.leader.call(ctx, request{Do: doCut})
		t.fault = timeOf(r.At)
		return err
	}
}

// appended waits until the store has accepted the first entry of a leader.
func (t *turn) appended(ctx context.Context, p *participant) error {
	ctx, cancel := context.WithTimeoutCause(ctx, firstEntry, fmt.Errorf("not within %v", firstEntry))
	defer cancel()
	_, err := p.await(ctx, evAppended)
	return err
}

// replaced waits for the successor, and measures what follows.
func (t *turn) replaced(ctx context.Context) error {
	won, err := t.successor(ctx)
	if err != nil {
		if r, resigned := t.leader.heard(evResigned); resigned && r.err() != nil {
			return fmt.Errorf("resign: %w", r.err()) // the reason for which nobody has won
		}
		return err
	}
	t.sample(Win, int64(won.Sub(t.fault)))
	if !t.twoLeaders() {
		return nil
	}
	err = t.appended(ctx, t.waiter)
	pause(ctx, time.Until(won.Add(restoring)))
	return errors.Join(err, t.compare(ctx, won))
}

// compare restores the old leader, and measures whether there are two leaders.
func (t *turn) compare(ctx context.Context, won time.Time) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settingUp, fmt.Errorf("not within %v", settingUp))
	defer cancel()
	if t.scenario.Name == Stop {
		if err := t.leader.process.Resume(); err != nil {
			return err
		}
	} else if _, err := t.leader.call(ctx, request{Do: doHeal}); err != nil {
		return err
	}
	pause(ctx, watching)
	held, err := t.leader.call(ctx, request{Do: doHeld})
	if err != nil {
		return err
	}
	t.flag(TwoLeaders, timeOf(held.At).After(won))
	r, err := t.waiter.call(ctx, request{Do: doLog})
	if err != nil {
		return err
	}
	if !written(r.Log, t.waiter.id) {
		return errors.New("the successor's entries are not in the log")
	}
	t.flag(LateWrites, lateWrites(r.Log, t.leader.id, t.waiter.id))
	return nil
}
