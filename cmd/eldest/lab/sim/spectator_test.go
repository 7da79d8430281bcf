package sim

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// An observer behind a bad network, over random scenarios (G6): what it reports
// was true at the revision it names, never goes back, and says so when nobody
// leads and when it does not know. At the end it knows the leader.
func TestObserverNeverGoesBack(t *testing.T) {
	const scenarios = 60
	told := map[string]int{}
	for n := range scenarios {
		t.Run(fmt.Sprintf("seed=%d", n), func(t *testing.T) {
			var last eldest.State
			var truth int64
			var r *result
			rig.Run(t, func(w *rig.World) {
				var v *spectator
				r = play(w, contender.Ours{}, draw(uint64(n)), &audience{
					begin: func(s *stage) { v = newSpectator(s, uint64(n)) },
					quiet: func(s *stage) {
						last, truth = v.leave(), s.history().LeaderAt(w.Server.Rev())
					},
				})
			})
			require.NotNil(t, r, "the scenario did not come to its end")
			for _, e := range r.history.Events {
				if e.Kind == oracle.Observed {
					told[e.Text]++
				}
			}
			if bad := oracle.Observations(r.history); len(bad) > 0 {
				t.Errorf("%v\n%v", bad, r)
			}
			require.NotEqual(t, eldest.Unknown, last.Kind, "healed long ago: %v", last.Reason)
			require.EqualValues(t, truth, last.Leader.Token, "the last report was %v", last)
		})
	}
	t.Logf("reported: %v", told)
	for _, kind := range []string{oracle.Unknown, oracle.Nobody, oracle.Led} {
		require.NotZero(t, told[kind], "INVALID: %s was never reported", kind)
	}
}
