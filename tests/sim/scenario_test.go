package sim

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/tests/sim/rig"
)

// enough is the number of scenarios from which on every kind of fault must have
// struck at least once.
const enough = 100

// Random scenarios against this repository's election: no violation in any.
func TestScenarios(t *testing.T) {
	from, to := chosen()
	begun, sum := time.Now(), map[string]int{}
	var virtual time.Duration
	failed := 0
	for n := from; n < to && failed < 3; n++ {
		t.Run(fmt.Sprintf("seed=%d", n), func(t *testing.T) {
			r := run(t, Eldest, draw(uint64(n)))
			if len(r.violations) > 0 || r.invalid() != "" {
				failed++
				t.Error(r)
			}
			add(sum, r)
			virtual += r.virtual
		})
	}
	require.LessOrEqual(t, failed, 2, "stopped early: enough scenarios failed")
	report(t, to-from, sum, virtual, time.Since(begun))
	if to-from >= enough && failed == 0 {
		requireAllStruck(t, sum)
	}
}

// The same scenarios against etcd's own election must find what is wrong there;
// if they do not, they prove nothing above.
func TestScenariosFindFaultsOfConcurrency(t *testing.T) {
	const scenarios = 60
	found := map[string]int{}
	for n := range scenarios {
		r := run(t, Concurrency, draw(uint64(n)))
		for _, v := range r.violations {
			found[v.Invariant]++
		}
	}
	t.Logf("violations found in %d scenarios: %v", scenarios, found)
	for _, invariant := range []string{"I1", "I4", "I5", "I6"} {
		require.NotZero(t, found[invariant], "%s was never found violated", invariant)
	}
}

// A seed determines the plan, and seeds differ.
func TestSeedDeterminesPlan(t *testing.T) {
	require.Equal(t, draw(7).String(), draw(7).String())
	require.NotEqual(t, draw(7).String(), draw(8).String())
}

func run(t *testing.T, impl Implementation, p *plan) (r *result) {
	rig.Run(t, func(w *rig.World) { r = play(w, impl, p, nil) })
	if r == nil {
		t.Fatalf("seed %d did not come to its end; its plan:\n%v", p.seed, p)
	}
	return r
}

func add(sum map[string]int, r *result) {
	for name, times := range r.struck {
		sum[name] += times
	}
	sum["tenures"] += r.tenures
	sum["acknowledged writes"] += r.acked
}

func report(t *testing.T, scenarios int, sum map[string]int, virtual, took time.Duration) {
	t.Logf("%d scenarios, %v of virtual time in %v, %v each",
		scenarios, virtual.Round(time.Second), took.Round(time.Millisecond), (took / time.Duration(scenarios)).Round(100*time.Microsecond))
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		t.Logf("%7d %s", sum[name], name)
	}
}

// requireAllStruck is the proof that each kind of fault took effect.
func requireAllStruck(t *testing.T, sum map[string]int) {
	t.Helper()
	for _, m := range menu {
		if m.verb == lose {
			continue
		}
		require.NotZero(t, sum[string(m.verb)], "INVALID: no %s took effect in any scenario", m.verb)
	}
	for _, reply := range replies {
		require.NotZero(t, sum["lose "+reply], "INVALID: no reply to a %s was lost in any scenario", reply)
	}
	for _, effect := range []string{"held bytes", "late bytes"} {
		require.NotZero(t, sum[effect], "INVALID: there were no %s in any scenario", effect)
	}
}
