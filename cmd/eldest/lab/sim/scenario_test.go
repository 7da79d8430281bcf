package sim

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

const (
	// enough is the number of scenarios from which on every kind of fault must have
	// struck at least once.
	enough = 200
	// stopAfter is how many failed scenarios are enough to read.
	stopAfter = 3
	// tenuresEach is how many tenures a scenario must have on average: 10,000 seeds
	// are for 50,000 tenures at least.
	tenuresEach = 5
)

// Random scenarios against this repository's election: no violation in any.
func TestScenarios(t *testing.T) {
	impl, st := chosenImpl(t), chosenStyle(t)
	from, to := chosen()
	switch {
	case *out != "":
		work(t, impl, st, from, to)
		return
	case *recordDir != "":
		record(t, impl)
		return
	}
	begun, sum := time.Now(), newSum()
	failed := func(o outcome) {
		sum.add(o)
		if o.Report != "" {
			t.Error(o.Report)
		}
	}
	if to-from < enough {
		for n := from; n < to && len(sum.Failed) < stopAfter; n++ {
			t.Run(fmt.Sprintf("seed=%d", n), func(t *testing.T) {
				begun := time.Now()
				failed(run(t, impl, st.drawFor(impl, uint64(n))).outcome(time.Since(begun), true))
			})
		}
	} else {
		share(t.Context(), t.TempDir(), split(impl.Name(), st, from, to, 25), func(_ job, all []outcome, err error) bool {
			if err != nil {
				t.Error(err)
			}
			for _, o := range all {
				failed(o)
			}
			return err == nil && len(sum.Failed) < stopAfter
		})
	}
	report(t, sum, time.Since(begun))
	require.False(t, t.Failed(), "%d scenarios failed", len(sum.Failed))
	require.Equal(t, to-from, sum.Scenarios)
	if sum.Scenarios >= enough {
		require.Empty(t, sum.never(impl), "INVALID: never in any scenario")
		require.Less(t, 50*sum.Mild, sum.Scenarios, "INVALID: too many scenarios without a fault")
		if st == ordinary {
			require.GreaterOrEqual(t, sum.Tenures, tenuresEach*sum.Scenarios, "INVALID: too few tenures")
		}
	}
}

// The same against the same by the API of etcd's package: no violation either. The seeds
// besides have found keys without a lease that stayed for ever, and a Done that was not closed
// when the context had ended.
func TestScenariosOfTheDropIn(t *testing.T) {
	const scenarios = 60
	impl := named(t, contender.DropIn)
	seeds := []uint64{132, 442, 534, 788, 1415, 1415, 1415, 1415, 1415, 1415, 1415, 1415, 1415, 1415}
	for n := range uint64(scenarios) {
		seeds = append(seeds, n)
	}
	tenures := 0
	for _, n := range seeds {
		r := run(t, impl, ordinary.drawFor(impl, n))
		require.Empty(t, r.found(), "%v", r)
		tenures += r.tally.Tenures
	}
	require.GreaterOrEqual(t, tenures, tenuresEach*len(seeds), "INVALID: too few tenures")
}

// The same scenarios against etcd's own election must find what is wrong there;
// if they do not, they prove nothing above.
func TestScenariosFindFaultsOfConcurrency(t *testing.T) {
	const scenarios = 60
	impl, found := concurrency(t), map[string]int{}
	for n := range scenarios {
		r := run(t, impl, ordinary.drawFor(impl, uint64(n)))
		for _, v := range r.violations {
			found[v.Invariant]++
		}
	}
	t.Logf("violations found in %d scenarios: %v", scenarios, found)
	for _, invariant := range []string{"I1", "I4", "I5", "I6"} {
		require.NotZero(t, found[invariant], "%s was never found violated", invariant)
	}
}

// A seed determines the plan, and seeds and styles differ.
func TestSeedDeterminesPlan(t *testing.T) {
	for _, st := range []style{ordinary, dense, quiet} {
		require.Equal(t, st.draw(7).String(), st.draw(7).String())
		require.NotEqual(t, st.draw(7).String(), st.draw(8).String())
	}
	require.NotEqual(t, dense.draw(7).String(), quiet.draw(7).String())
}

// The command in the report of a scenario plays that one: this election, style and seed.
func TestAgainIsTheSameScenario(t *testing.T) {
	impl := concurrency(t)
	r := run(t, impl, ordinary.drawFor(impl, 3))
	words := strings.Fields(r.again())
	for name, want := range map[string]string{"sim.impl": contender.Concurrency, "sim.style": string(ordinary), "sim.seed": "3"} {
		require.NotNil(t, flag.Lookup(name))
		require.Contains(t, words, fmt.Sprintf("-%s=%s", name, want))
	}
	require.Contains(t, r.String(), r.again())
}

func run(t *testing.T, impl contender.Contender, p *plan) (r *result) {
	rig.RunWith(t, p.options(), func(w *rig.World) { r = play(w, impl, p) })
	if r == nil {
		t.Fatalf("%s seed %d did not come to its end; its plan:\n%v", p.style, p.seed, p)
	}
	return r
}

func report(t *testing.T, s *sum, took time.Duration) {
	t.Logf("%d scenarios, %d tenures, %.1f virtual hours in %v, %.1f ms each; without a fault: %d",
		s.Scenarios, s.Tenures, s.Years*year.Hours(), took.Round(time.Millisecond), 1000*s.Seconds/float64(max(1, s.Scenarios)), s.Mild)
	for _, name := range slices.Sorted(maps.Keys(s.Struck)) {
		t.Logf("%9d %s", s.Struck[name], name)
	}
}
