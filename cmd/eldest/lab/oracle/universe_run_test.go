package oracle

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// There are no false alarms: in many universes without a defect, with any delays, stops and
// partitions, no violation is found.
func TestNoFalseAlarms(t *testing.T) {
	const universes = 100
	sum := Tally{}
	late, seen := 0, 0
	for seed := range universes {
		h := happen(uint64(seed), "")
		if got := h.Judge(); len(got) > 0 {
			t.Fatalf("universe %d: %v\n%v", seed, got, h)
		}
		if seed%20 == 0 {
			require.Empty(t, h.Invalid(Tally{Tenures: 2, Acked: 10, Reads: 10, Samples: 10, Healed: 1, Queues: 1, Fenced: 1}), "universe %d", seed)
		}
		sum.Add(h.Tally())
		newest := int64(0)
		tenures, _ := h.tenures()
		for _, w := range tenures {
			if w.token < newest {
				late++
			}
			newest = max(newest, w.token)
		}
		seen += surprises(h)
	}
	t.Logf("%+v; wins told late: %d; writes of unknown outcome that were read: %d", sum, late, seen)
	// The difficult cases have happened.
	require.Positive(t, late)
	require.Greater(t, seen, universes)
	require.Greater(t, sum.LongStops, universes/2)
	require.Greater(t, sum.Refused, universes)
	require.Equal(t, universes, sum.Healed)
}

// surprises counts reads of writes that were not reported as successful.
func surprises(h *History) int {
	unknown, n := map[string]bool{}, 0
	for _, e := range h.Events {
		switch e.Kind {
		case Sent:
			unknown[e.Write] = true
		case Acked, Refused:
			delete(unknown, e.Write)
		}
	}
	for _, e := range h.Events {
		if e.Kind == Read && unknown[e.Write] {
			n++
			delete(unknown, e.Write)
		}
	}
	return n
}

// No checker has a gap: each defect is found, by the checkers that are responsible for it.
func TestDefectsAreFound(t *testing.T) {
	const universes = 40
	for defect, by := range map[string][]string{
		"no guard":         {"I2", "I3", "linear"},
		"sure for good":    {"leading"},
		"does not look":    {"I4", "linear"},
		"calls it refused": {"I3", "linear"},
		"loses writes":     {"I3", "linear"},
		"stale reads":      {"linear", "precedes"},
		"goes back":        {"G6"},
		"says good-bye":    {"exits"},
		"no fence":         {"fence"},
		"ghost":            {"healing"},
	} {
		t.Run(defect, func(t *testing.T) {
			found := map[string]int{}
			for seed := range universes {
				in := map[string]bool{}
				for _, v := range happen(uint64(seed), defect).Judge() {
					in[v.Invariant] = true
				}
				for invariant := range in {
					found[invariant]++
				}
			}
			t.Log(fmt.Sprint("found in universes: ", found))
			for _, invariant := range by {
				require.NotZero(t, found[invariant], invariant)
			}
		})
	}
}
