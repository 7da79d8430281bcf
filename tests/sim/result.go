package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/eldest-io/eldest/tests/sim/history"
)

// result is what became of a scenario.
type result struct {
	plan       *plan
	history    *history.History
	violations []history.Violation
	struck     map[string]int // what took effect, by name
	tenures    int
	acked      int
	virtual    time.Duration
}

// faults counts what took effect and is a fault: a departure of one's own will
// is not, and bytes are counted beside the cut that held them.
func (r *result) faults() int {
	n := 0
	for name, times := range r.struck {
		switch {
		case name == string(resign), name == string(withdraw), name == string(flicker), strings.HasSuffix(name, " bytes"):
		default:
			n += times
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
	case r.faults() == 0:
		return "no fault took effect"
	}
	return ""
}

// String is the report of a failed run: how to see it again, what was wrong,
// the plan, and all that happened at virtual instants.
func (r *result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d; to run it alone:\n\tgo test ./tests/sim -run '^TestScenarios$' -sim.seed=%d\n", r.plan.seed, r.plan.seed)
	for _, v := range r.violations {
		fmt.Fprintln(&b, v)
	}
	if why := r.invalid(); why != "" {
		fmt.Fprintln(&b, "INVALID:", why)
	}
	fmt.Fprintf(&b, "\n%v\n%v", r.plan, r.history)
	return b.String()
}
