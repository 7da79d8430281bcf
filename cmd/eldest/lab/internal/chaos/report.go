package chaos

import (
	"fmt"
	"slices"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
)

// add takes a series into the report.
func (r *Report) add(s Series) {
	r.Series = append(r.Series, s)
	r.Rounds += len(s.Rounds)
	for _, round := range s.Rounds {
		if round.Invalid != "" {
			r.Invalid++
			r.InvalidBecause = append(r.InvalidBecause, fmt.Sprintf("seed %d round %d: %s", s.Seed, round.Number, round.Invalid))
		}
	}
	for _, why := range s.Invalid {
		r.InvalidBecause = append(r.InvalidBecause, fmt.Sprintf("seed %d: %s", s.Seed, why))
	}
	for _, v := range s.Violations {
		r.Violations = append(r.Violations, v)
		r.ByInvariant[v.Invariant]++
	}
	r.Add(s.Tally)
}

// What a whole run must have had, where it had the occasion so often that chance does
// not explain its absence. A single series may be without.
const (
	// Half of all stops of leaders are longer than the lease.
	stopsOfLeaders = 20
	// A write is refused in every third round or so.
	roundsWithWrites = 100
	// A leader that goes on after such a stop writes once more, mostly after its successor.
	longStopsWithWrites = 20
)

// prove says what nothing in the run put to the test.
func (r *Report) prove() {
	stops := 0
	for _, s := range r.Series {
		for _, round := range s.Rounds {
			if slices.ContainsFunc(round.Strikes, func(s plan.Strike) bool { return s.Fault == plan.Stop && s.On == plan.Leader }) {
				stops++
			}
		}
	}
	if stops >= stopsOfLeaders && r.LongStops == 0 {
		r.InvalidBecause = append(r.InvalidBecause, fmt.Sprintf("a leader was stopped %d times, and never longer than its lease", stops))
	}
	if r.LongStops >= longStopsWithWrites && r.FencedOff == 0 {
		r.InvalidBecause = append(r.InvalidBecause, fmt.Sprintf("the store outside never saw an older token, after %d stops of leaders longer than their lease", r.LongStops))
	}
	if r.Rounds >= roundsWithWrites && r.Refused == 0 {
		r.InvalidBecause = append(r.InvalidBecause, fmt.Sprintf("no write was refused in %d rounds", r.Rounds))
	}
}

// count makes the line of each fault that was to occur.
func (r *Report) count(faults []plan.Fault) {
	r.Faults = []FaultLine{}
	for _, info := range plan.All() {
		if slices.Contains(faults, info.Fault) {
			r.Faults = append(r.Faults, r.line(info.Fault))
		}
	}
}

func (r *Report) line(f plan.Fault) FaultLine {
	line := FaultLine{Fault: f}
	for _, s := range r.Series {
		for _, round := range s.Rounds {
			if !slices.ContainsFunc(round.Strikes, func(s plan.Strike) bool { return s.Fault == f }) {
				continue
			}
			line.Injected++
			if slices.ContainsFunc(round.Struck, func(s Struck) bool { return s.Fault == f }) {
				line.Struck++
			}
			if slices.Contains(round.Unsupported, f) {
				line.Unsupported++
				continue // it has no part in what happened
			}
			if slices.ContainsFunc(s.Violations, func(v Violation) bool { return v.Round == round.Number }) {
				line.Violations++
			}
		}
	}
	return line
}
