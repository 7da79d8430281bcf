package sim

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
)

// outcome is what a scenario adds to a suite: a line of JSON between processes.
type outcome struct {
	Style style  `json:"style"`
	Seed  uint64 `json:"seed"`
	sum
	// Invalid says why the scenario proves nothing.
	Invalid string `json:"invalid,omitempty"`
	// Report is there for a scenario that failed.
	Report string `json:"report,omitempty"`
}

// outcome sums a result up. The history of a failed one is kept, if that is wanted: where
// violations are expected there would be thousands.
func (r *result) outcome(took time.Duration, keep bool) outcome {
	o := outcome{Style: r.plan.style, Seed: r.plan.seed, Invalid: r.invalid(), sum: sum{
		Scenarios: 1, Tenures: r.tally.Tenures, Acked: r.tally.Acked, Reads: r.tally.Reads,
		Years: float64(r.virtual) / float64(year), Seconds: took.Seconds(),
		Struck: r.struck, Violations: map[string]int{}, Found: map[string]*found{},
	}}
	if r.faults() == 0 {
		o.Mild = 1
	}
	for _, v := range r.violations {
		o.Violations[v.Invariant]++
		o.Found[v.Invariant] = &found{1, []string{fmt.Sprintf("%s %d", o.Style, o.Seed)}}
	}
	if len(r.violations) > 0 || o.Invalid != "" {
		if keep {
			r.kept = r.keep()
		}
		o.Report = r.String()
	}
	return o
}

// sum is what many scenarios add up to.
type sum struct {
	Scenarios int `json:"scenarios"`
	Tenures   int `json:"tenures"`
	Acked     int `json:"acknowledgedWrites"`
	Reads     int `json:"reads"`
	// Years is virtual time, in years of 365 days.
	Years float64 `json:"virtualYears"`
	// Seconds is the time that the scenarios took, each in its process.
	Seconds float64 `json:"scenarioSeconds"`
	// Mild counts those in which no fault took effect, as happens to one in some hundred.
	Mild int `json:"withoutFault"`
	// Struck counts faults and proofs of faults, by name.
	Struck map[string]int `json:"struck"`
	// Violations counts what the checkers found, by invariant.
	Violations map[string]int `json:"violations"`
	// Found is where violations were found, by invariant.
	Found  map[string]*found `json:"found,omitempty"`
	Failed []outcome         `json:"-"`
}

// found is in how many scenarios an invariant was violated, and the first of them.
type found struct {
	Scenarios int      `json:"scenarios"`
	Seeds     []string `json:"seeds"`
}

// firstSeeds is how many seeds are kept of each invariant that was violated.
const firstSeeds = 8

func (f *found) add(g found) {
	f.Scenarios += g.Scenarios
	f.Seeds = append(f.Seeds, g.Seeds...)
	f.Seeds = f.Seeds[:min(len(f.Seeds), firstSeeds)]
}

func newSum() *sum {
	return &sum{Struck: map[string]int{}, Violations: map[string]int{}, Found: map[string]*found{}}
}

const year = 365 * 24 * time.Hour

func (s *sum) add(o outcome) {
	s.merge(&o.sum)
	if o.Report != "" {
		s.Failed = append(s.Failed, o)
	}
}

// merge adds what another one has.
func (s *sum) merge(o *sum) {
	s.Scenarios += o.Scenarios
	s.Tenures += o.Tenures
	s.Acked += o.Acked
	s.Reads += o.Reads
	s.Years += o.Years
	s.Seconds += o.Seconds
	s.Mild += o.Mild
	for name, n := range o.Struck {
		s.Struck[name] += n
	}
	for invariant, n := range o.Violations {
		s.Violations[invariant] += n
	}
	for invariant, f := range o.Found {
		if s.Found[invariant] == nil {
			s.Found[invariant] = &found{}
		}
		s.Found[invariant].add(*f)
	}
	s.Failed = append(s.Failed, o.Failed...)
}

// never returns the kinds of fault that never struck and should have, with an
// election.
func (s *sum) never(impl contender.Contender) []string {
	var out []string
	for _, k := range kinds() {
		if !k.foreign(impl) && s.Struck[k.name] == 0 && (!k.rare || s.Scenarios >= plenty) {
			out = append(out, k.name)
		}
	}
	return out
}

// merged is the sum of many.
func merged(sums map[style]*sum) *sum {
	out := newSum()
	for _, s := range sums {
		out.merge(s)
	}
	return out
}
