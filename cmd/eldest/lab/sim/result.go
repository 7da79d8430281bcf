package sim

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// result is what became of a scenario.
type result struct {
	impl       string // whose election
	plan       *plan
	history    *oracle.History
	violations []oracle.Violation
	struck     map[string]int // what took effect, by name
	tally      oracle.Tally
	virtual    time.Duration
	kept       string // where the history of a failed run is
}

// faults counts what took effect and is a fault: a departure of one's own will
// is not, and the proofs of faults are counted beside them.
func (r *result) faults() int {
	n := 0
	for _, k := range kinds() {
		if !k.effect {
			n += r.struck[k.name]
		}
	}
	return n
}

// invalid says why a run proves nothing, or "". An invariant that nothing put to
// the test is not one that held.
func (r *result) invalid() string {
	return strings.Join(r.history.Invalid(oracle.Tally{Tenures: 1, Acked: 1, Reads: 1, Queues: 1, Fenced: 1}), "; ")
}

// found says what was wrong, a line each.
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

// keep writes the history of a failed run into a directory of its own, with a picture of
// the register, and returns where.
func (r *result) keep() string {
	dir, err := os.MkdirTemp("", fmt.Sprintf("eldest-sim-%s-%d-", r.plan.style, r.plan.seed))
	if err == nil {
		err = r.history.Keep(dir, r.found())
	}
	if err != nil {
		return fmt.Sprintf("%s (incomplete: %v)", dir, err)
	}
	return dir
}

// again is the command that plays the scenario once more.
func (r *result) again() string {
	return fmt.Sprintf("go test ./cmd/eldest/lab/sim -run '^TestScenarios$' -v -count=1 -sim.impl=%s -sim.style=%s -sim.seed=%d", r.impl, r.plan.style, r.plan.seed)
}

// String is the report of a failed run: how to see it again, what was wrong,
// the plan, and all that happened at virtual instants.
func (r *result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d; to run it alone:\n\t%s\n", r.plan.seed, r.again())
	b.WriteString(r.found())
	if r.kept != "" {
		fmt.Fprintln(&b, "history, and a picture of the register:", r.kept)
	}
	fmt.Fprintf(&b, "\n%v\n%v", r.plan, r.history)
	return b.String()
}
