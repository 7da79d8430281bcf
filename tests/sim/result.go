package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/eldest-io/eldest/oracle"
)

// result is what became of a scenario.
type result struct {
	plan       *plan
	history    *oracle.History
	violations []oracle.Violation
	struck     map[string]int // what took effect, by name
	tenures    int
	acked      int
	reads      int
	virtual    time.Duration
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
	switch {
	case r.tenures == 0:
		return "nobody ever led"
	case r.acked == 0:
		return "nobody ever wrote"
	case r.reads == 0:
		return "nobody ever read what was written"
	}
	return ""
}

// String is the report of a failed run: how to see it again, what was wrong,
// the plan, and all that happened at virtual instants.
func (r *result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d; to run it alone:\n\tgo test ./tests/sim -run '^TestScenarios$' -sim.style=%s -sim.seed=%d\n", r.plan.seed, r.plan.style, r.plan.seed)
	for _, v := range r.violations {
		fmt.Fprintln(&b, v)
	}
	if why := r.invalid(); why != "" {
		fmt.Fprintln(&b, "INVALID:", why)
	}
	fmt.Fprintf(&b, "\n%v\n%v", r.plan, r.history)
	return b.String()
}
