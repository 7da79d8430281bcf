package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/internal/retry"
)

// turn is one contender's turn in one round.
type turn struct {
	*run
	ctx       context.Context // of the turn
	point     point
	contender string
	// round is negative in the warm-up, whose samples are discarded.
	round int
	// share is for how many of the point's rounds the turn counts.
	share int
	// samples are added to the report if the turn does not fail.
	samples []Result
	// The clean-up after the turn: undo, the last first; then all sessions are closed, and at last
	// the places.
	undo     []func(ctx context.Context)
	mu       sync.Mutex // guards sessions
	sessions []closer
	places   []place
}

type closer interface {
	Close(ctx context.Context) error
}

func (t *turn) take(measure func(t *turn)) error {
	defer t.undoAll()
	ctx, cancel := context.WithTimeout(t.run.ctx, t.point.timeout)
	defer cancel()
	t.ctx = ctx
	if err := try(func() { measure(t) }); err != nil || t.round < 0 {
		return err
	}
	for _, s := range t.samples {
		x := t.result(s.Metric, s.Unit)
		x.Samples = append(x.Samples, s.Samples...)
	}
	return nil
}

// result returns the result of the turn's contender at its point; it adds one if there is none.
func (t *turn) result(metric, unit string) *Result {
	if x := t.report.Find(t.contender, t.point.regime, t.point.n, metric); x != nil {
		return x
	}
	t.report.Results = append(t.report.Results, Result{
		Contender: t.contender, Regime: t.point.regime, N: t.point.n, Metric: metric, Unit: unit,
	})
	return &t.report.Results[len(t.report.Results)-1]
}

// fail counts rounds of the turn's point as failed, in the warm-up as well, in a result without a
// metric.
func (t *turn) fail(err error, rounds int) {
	x := t.result("", Counts)
	x.Errors, x.FirstError = x.Errors+rounds, cmp.Or(x.FirstError, err.Error())
}

// conclude completes the report: every result of a point counts the point's failures, and a point
// without measurements keeps the result without a metric.
func (r *run) conclude() *Report {
	failed, measured := map[string]Result{}, map[string]bool{}
	at := func(x Result) string { return fmt.Sprintf("%q %q %d", x.Contender, x.Regime, x.N) }
	for _, x := range r.report.Results {
		if measured[at(x)] = measured[at(x)] || x.Metric != ""; x.Metric == "" {
			failed[at(x)] = x
		}
	}
	r.report.Results = slices.DeleteFunc(r.report.Results, func(x Result) bool { return x.Metric == "" && measured[at(x)] })
	for i := range r.report.Results {
		x := &r.report.Results[i]
		x.Errors, x.FirstError = failed[at(*x)].Errors, failed[at(*x)].FirstError
		x.Summarize()
	}
	r.report.Seconds = time.Since(r.report.Time).Round(time.Millisecond).Seconds()
	return r.report
}

// after registers f to be called when the turn is over.
func (t *turn) after(f func(ctx context.Context)) { t.undo = append(t.undo, f) }

// undoAll runs the clean-up. Its time limit grows with the number of sessions.
func (t *turn) undoAll() {
	ctx, cancel := context.WithTimeout(t.cleanup, cleanupTimeout+time.Duration(len(t.sessions))*10*time.Millisecond)
	defer cancel()
	for _, f := range slices.Backward(t.undo) {
		f(ctx)
	}
	_ = parallel(ctx, len(t.sessions), func(ctx context.Context, i int) error {
		_ = t.sessions[i].Close(ctx) // at the latest its lease expires
		return nil
	})
	for _, p := range t.places {
		_ = p.close()
	}
	t.undo, t.sessions, t.places = nil, nil, nil
}

// local makes a place in this process, which ends with the turn.
func (t *turn) local() *local {
	l := must(newLocal(t.site))
	t.places = append(t.places, l)
	return l
}

// election returns a name that no other turn uses.
func (t *turn) election() string {
	t.elections++
	return fmt.Sprintf("%s-%d", t.name, t.elections)
}

// sample adds a measurement, which is discarded if the turn fails or is a warm-up.
func (t *turn) sample(metric, unit string, value int64) {
	t.samples = append(t.samples, Result{Metric: metric, Unit: unit, Samples: []int64{value}})
}

// took adds a duration, counted a number.
func (t *turn) took(metric string, d time.Duration) { t.sample(metric, Nanoseconds, int64(d)) }
func (t *turn) counted(metric string, n int64)      { t.sample(metric, Counts, n) }

// note adds a line to the report's notes, once.
func (t *turn) note(format string, args ...any) {
	line := fmt.Sprintf("%s, %s", t.contender, t.point.regime)
	if t.point.n > 0 {
		line += fmt.Sprintf(", n=%d", t.point.n)
	}
	line += ": " + fmt.Sprintf(format, args...)
	if !slices.Contains(t.report.Notes, line) {
		t.report.Notes = append(t.report.Notes, line)
	}
}

// sleep blocks for d.
func (t *turn) sleep(d time.Duration) { check(retry.Sleep(t.ctx, d)) }

// parallel calls script for 0 to n-1, some at a time, until one fails.
func (t *turn) parallel(n int, script func(i int)) {
	check(parallel(t.ctx, n, func(_ context.Context, i int) error { return try(func() { script(i) }) }))
}

// open starts a session of the turn's contender, which is closed with the turn. It may be called
// from many goroutines.
func (t *turn) open(on host, ttl time.Duration) made {
	s := must(on.open(t.ctx, t.contender, ttl))
	t.closeLater(s)
	return s
}

func (t *turn) closeLater(s closer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions = append(t.sessions, s)
}

// candidate makes a candidate on a session of its own.
func (t *turn) candidate(on host, election string, ttl time.Duration) *candidate {
	return must(t.open(on, ttl).candidate(t.ctx, election))
}

// pair makes an election with a leader and a successor, and blocks until the successor is queued.
func (t *turn) pair(leaders, successors host, ttl time.Duration) (leader, successor *candidate, won <-chan outcome) {
	election := t.election()
	queue := t.monitor(election)
	defer queue.stop() // from here on only requests of the candidates are measured
	leader = t.candidate(leaders, election, ttl)
	must(leader.campaign(t.ctx))
	successor = t.candidate(successors, election, ttl)
	won = start(t.ctx, successor.campaign)
	queue.await(2)
	return leader, successor, won
}
