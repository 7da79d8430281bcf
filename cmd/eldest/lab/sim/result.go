package sim

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// result is the result of a scenario.
type result struct {
	plan       *plan
	history    *oracle.History
	violations []oracle.Violation
	struck     map[string]int // what took effect, by name
	tally      oracle.Tally
	virtual    time.Duration
}

// invalid returns why a run proves nothing, or "". An invariant that nothing tested does not count
// as one that held.
func (r *result) invalid() string {
	return strings.Join(r.history.Invalid(oracle.Tally{Tenures: 1, Acked: 1, Reads: 1, Queues: 1, Fenced: 1}), "; ")
}

// found lists what was wrong, one line each.
func (r *result) found() string {
	var b strings.Builder
	for _, v := range r.violations {
		fmt.Fprintln(&b, v)
	}
	if why := r.invalid(); why != "" {
		fmt.Fprintln(&b, "INVALID:", why)
	}
	return b.String()
}

// again returns the command that runs the scenario again.
func (r *result) again() string {
	return fmt.Sprintf("go test ./cmd/eldest/lab/sim -run '^TestScenarios$' -v -count=1 -sim.impl=%s -sim.style=%s -sim.seed=%d", r.plan.impl.Name(), r.plan.style, r.plan.seed)
}

// String is the report of a failed run: how to repeat it, what was wrong, the plan, and all events
// at virtual instants. The history is kept in a directory of its own.
func (r *result) String() string {
	kept, err := os.MkdirTemp("", fmt.Sprintf("eldest-sim-%s-%d-", r.plan.style, r.plan.seed))
	if err == nil {
		err = r.history.Keep(kept, r.found())
	}
	if err != nil {
		kept += fmt.Sprintf(" (incomplete: %v)", err)
	}
	return fmt.Sprintf("seed %d; to run it alone:\n\t%s\n%shistory, and a picture of the register: %s\n\n%v\n%v", r.plan.seed, r.again(), r.found(), kept, r.plan, r.history)
}

// outcome is what a scenario adds to a suite. It is a line of JSON between processes.
type outcome struct {
	Style style  `json:"style"`
	Seed  uint64 `json:"seed"`
	sum
	// Invalid is why the scenario proves nothing.
	Invalid string `json:"invalid,omitempty"`
	// Report is set for a scenario that failed.
	Report string `json:"report,omitempty"`
}

// outcome summarises a result. Expected violations are not reported: there would be thousands of reports.
func (r *result) outcome(took time.Duration) outcome {
	o := outcome{Style: r.plan.style, Seed: r.plan.seed, Invalid: r.invalid(), sum: sum{
		Scenarios: 1, Tenures: r.tally.Tenures, Acked: r.tally.Acked, Reads: r.tally.Reads,
		Years: float64(r.virtual) / float64(year), Seconds: took.Seconds(), Mild: 1,
		Struck: r.struck, Violations: map[string]int{}, Found: map[string]*found{},
	}}
	for _, k := range kinds() {
		if !k.effect && r.struck[k.name] > 0 { // a voluntary departure is no fault
			o.Mild = 0
		}
	}
	for _, v := range r.violations {
		o.Violations[v.Invariant]++
		o.Found[v.Invariant] = &found{1, []string{fmt.Sprintf("%s %d", o.Style, o.Seed)}}
	}
	if o.Invalid != "" || len(r.violations) > 0 && faultless(r.plan.impl) {
		o.Report = r.String()
	}
	return o
}

// sum is the total of many scenarios.
type sum struct {
	Scenarios int `json:"scenarios"`
	Tenures   int `json:"tenures"`
	Acked     int `json:"acknowledgedWrites"`
	Reads     int `json:"reads"`
	// Years is virtual time, in years of 365 days.
	Years float64 `json:"virtualYears"`
	// Seconds is the time that the scenarios took, each in its process.
	Seconds float64 `json:"scenarioSeconds"`
	// Mild counts those in which no fault took effect, as happens in one of some hundred.
	Mild int `json:"withoutFault"`
	// Struck counts faults and proofs of faults, by name.
	Struck map[string]int `json:"struck"`
	// Violations counts what the checkers found, by invariant.
	Violations map[string]int `json:"violations"`
	// Found has the scenarios in which violations were found, by invariant.
	Found  map[string]*found `json:"found,omitempty"`
	Failed []outcome         `json:"-"`
}

// found has the number of scenarios in which an invariant was violated, and the first of them.
type found struct {
	Scenarios int      `json:"scenarios"`
	Seeds     []string `json:"seeds"`
}

// firstSeeds is how many seeds are kept for each violated invariant.
const firstSeeds = 8

const year = 365 * 24 * time.Hour

func newSum() *sum {
	return &sum{Struck: map[string]int{}, Violations: map[string]int{}, Found: map[string]*found{}}
}

func (s *sum) add(o outcome) {
	s.merge(&o.sum)
	if o.Report != "" || o.Invalid != "" {
		s.Failed = append(s.Failed, o)
	}
}

// merge adds another sum.
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
		to := s.Found[invariant]
		to.Scenarios += f.Scenarios
		to.Seeds = append(to.Seeds, f.Seeds...)
		to.Seeds = to.Seeds[:min(len(to.Seeds), firstSeeds)]
	}
	s.Failed = append(s.Failed, o.Failed...)
}

// never returns the kinds of fault that never took effect, although with this election they should
// have.
func (s *sum) never(impl contender.Contender) []string {
	var out []string
	for _, k := range kinds() {
		if !k.foreign(impl) && s.Struck[k.name] == 0 && (!k.rare || s.Scenarios >= plenty) {
			out = append(out, k.name)
		}
	}
	return out
}
