package sim

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// An observer behind a bad network, over random scenarios (G6): what it reports
// was true at the revision it names, never goes back, and says so when nobody
// leads and when it does not know. At the end it knows the leader.
func TestObserverNeverGoesBack(t *testing.T) {
	const scenarios = 60
	told := map[string]int{}
	for n := range scenarios {
		t.Run(fmt.Sprintf("seed=%d", n), func(t *testing.T) {
			p := draw(uint64(n))
			p.watched = true
			r := run(t, contender.Ours{}, p)
			settled := 0
			for _, e := range r.history.Events {
				switch e.Kind {
				case oracle.Observed:
					told[e.Text]++
				case oracle.Settled:
					settled++
				}
			}
			require.Empty(t, oracle.Observations(r.history), "%v", r)
			require.Equal(t, 1, settled, "what it knows at the end is judged")
		})
	}
	t.Logf("reported: %v", told)
	for _, kind := range []string{oracle.Unknown, oracle.Nobody, oracle.Led} {
		require.NotZero(t, told[kind], "INVALID: %s was never reported", kind)
	}
}
