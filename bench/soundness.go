package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A run whose cluster or worker is gone measures nothing any more. It ends, rather than
// wait for one time-out after the other.

// askPatience is how long the cluster may take to answer whether it is there.
const askPatience = 10 * time.Second

// barrenRounds is how many rounds in a row may pass in which nobody succeeds.
const barrenRounds = 2

var errBarren = errors.New("all turns failed, round after round")

// answers asks etcd whether it is there, by a read that needs a quorum.
func (r *run) answers(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	if _, err := r.judge.Get(asking, r.name, clientv3.WithCountOnly()); err != nil {
		return fmt.Errorf("etcd at %v does not answer: %w", r.site.Client.Endpoints, err)
	}
	return nil
}

// sound says, after a turn has failed, whether another can succeed.
func (r *run) sound(ctx context.Context) error {
	for _, h := range r.hosts {
		if w, ok := h.(*remote); ok && w.ended() {
			return w.over()
		}
	}
	return r.answers(ctx)
}

// round takes in how many turns of a round succeeded and failed, and the last failure.
func (r *run) round(succeeded, failed int, why error) error {
	switch {
	case succeeded > 0:
		r.barren = 0
	case failed > 0:
		r.barren++
	}
	if r.barren < barrenRounds {
		return nil
	}
	return fmt.Errorf("%w; the last: %w", errBarren, why)
}

// place is where failures are counted: those of a turn are failures of all that would
// have been measured in it.
type place struct {
	contender, regime string
	n                 int
}

// failures are those of a place.
type failures struct {
	rounds int
	first  string
}

// fail counts rounds of the turn's point as failed. Failures while warming up count too:
// a contender that fails has failed.
func (t *turn) fail(err error, rounds int) {
	at := place{t.contender, t.point.regime, t.point.n}
	if t.failed == nil {
		t.failed = map[place]*failures{}
	}
	if t.failed[at] == nil {
		t.failed[at] = &failures{first: err.Error()}
		t.places = append(t.places, at)
	}
	t.failed[at].rounds += rounds
}

// conclude completes the report: every result of a place counts its failures, and a
// place at which nothing succeeded has one result, without a metric.
func (r *run) conclude() *Report {
	for _, at := range r.places {
		found := false
		for i := range r.report.Results {
			x := &r.report.Results[i]
			if (place{x.Contender, x.Regime, x.N}) != at {
				continue
			}
			found = true
			x.Errors = r.failed[at].rounds
			if x.FirstError == "" {
				x.FirstError = r.failed[at].first
			}
		}
		if !found {
			r.report.Results = append(r.report.Results, Result{
				Contender: at.contender, Regime: at.regime, N: at.n, Unit: Counts,
				Errors: r.failed[at].rounds, FirstError: r.failed[at].first,
			})
		}
	}
	for i := range r.report.Results {
		r.report.Results[i].summarize()
	}
	return r.report
}

// note adds a line to the report's notes, once.
func (t *turn) note(format string, args ...any) {
	what := fmt.Sprintf("%s, %s", t.contender, t.point.regime)
	if t.point.n > 0 {
		what += fmt.Sprintf(", n=%d", t.point.n)
	}
	line := what + ": " + fmt.Sprintf(format, args...)
	if !slices.Contains(t.report.Notes, line) {
		t.report.Notes = append(t.report.Notes, line)
	}
}
