package bench

import (
	"context"
	"fmt"
	"time"
)

// turn is one contender's turn in one round.
type turn struct {
	*run
	point     point
	contender string
	// warm says that its samples are thrown away.
	warm bool
	// share is how many of the point's rounds it is, where it is more than one.
	share int
	// undo is what is tidied up when it is over, the last first.
	undo []func(ctx context.Context)
	// taken are its samples, which count if it does not fail.
	taken []Result
}

func (t *turn) take(ctx context.Context, measure func(ctx context.Context, t *turn) error) error {
	defer t.tidy()
	bounded, cancel := context.WithTimeout(ctx, t.point.timeout)
	defer cancel()
	if err := measure(bounded, t); err != nil {
		return err
	}
	for _, s := range t.taken {
		x := t.result(s.Metric, s.Unit)
		x.Samples = append(x.Samples, s.Samples...)
		if x.FirstError == "" {
			x.FirstError = s.FirstError
		}
	}
	return nil
}

// tidy undoes what the turn has set up.
func (t *turn) tidy() {
	last, cancel := context.WithTimeout(t.last, farewell)
	defer cancel()
	for i := len(t.undo) - 1; i >= 0; i-- {
		t.undo[i](last)
	}
	t.undo = nil
}

// after has f called when the turn is over, with a context for tidying up.
func (t *turn) after(f func(ctx context.Context)) { t.undo = append(t.undo, f) }

// election returns a name that no other turn uses.
func (t *turn) election() string {
	t.elections++
	return fmt.Sprintf("%s-%d", t.name, t.elections)
}

// sample notes a measurement, which counts unless the turn fails or warms up.
func (t *turn) sample(metric, unit string, value int64) {
	if !t.warm {
		t.taken = append(t.taken, Result{Metric: metric, Unit: unit, Samples: []int64{value}})
	}
}

// took notes a time.
func (t *turn) took(metric string, d time.Duration) { t.sample(metric, Nanoseconds, int64(d)) }

// remark adds an error, if there is one, to the samples so far, where errors are what
// is counted and the turn goes on.
func (t *turn) remark(err error) {
	if err == nil {
		return
	}
	for i := range t.taken {
		t.taken[i].FirstError = err.Error()
	}
}

// result returns where the turn's samples of a metric are kept.
func (t *turn) result(metric, unit string) *Result {
	if x := t.report.Find(t.contender, t.point.regime, t.point.n, metric); x != nil {
		return x
	}
	t.report.Results = append(t.report.Results, Result{
		Contender: t.contender, Regime: t.point.regime, N: t.point.n, Metric: metric, Unit: unit,
	})
	return &t.report.Results[len(t.report.Results)-1]
}

// open starts a session of the turn's contender, which is closed with the turn.
func (t *turn) open(ctx context.Context, on Host, ttl time.Duration) (Session, error) {
	s, err := on.Open(ctx, t.contender, ttl)
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	t.after(func(ctx context.Context) {
		_ = s.Close(ctx) // at the latest its lease runs out
	})
	return s, nil
}

// candidate makes a candidate on a session of its own.
func (t *turn) candidate(ctx context.Context, on Host, election string, ttl time.Duration) (Candidate, error) {
	s, err := t.open(ctx, on, ttl)
	if err != nil {
		return nil, err
	}
	return s.Candidate(election, "")
}
