package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Every observer of every contender learns of every change, wherever it lives, and
// the counts are what the protocols make them: ours is told once a process and asks
// nothing, whatever the size of the crowd; the others are told, and ask, once for each
// observer.
func TestFanout(t *testing.T) {
	const rounds, processes, n = 2, 2, 30
	eachAtOnce(t, []string{"eldest", "concurrency", "herd"}, func(t *testing.T, name string) {
		report, err := Run(testContext(t), siteAt(etcdtest.Shared(t).Endpoints()), "fanout", Options{
			Rounds: rounds, Warmup: -1, Sizes: []int{n}, Processes: processes, Contenders: []string{name},
		})
		require.NoError(t, err)
		require.Equal(t, processes, report.Setup.Processes)
		for _, regime := range []string{"one-process", "slow-mixed", "processes"} {
			metric := func(metric string) *Result {
				r := find(t, report, name, regime, n, metric)
				require.Equal(t, "", r.FirstError)
				require.Len(t, r.Samples, rounds)
				return r
			}
			require.Positive(t, metric("last").Min)
			require.LessOrEqual(t, metric("spread").Max, metric("last").Max)
			told := int64(1)
			if regime == "processes" {
				told = processes
			}
			switch {
			case name == "eldest":
				require.Equal(t, []int64{told, told}, metric("events").Samples)
				require.Zero(t, metric("watches").Max)
				// A quiet watch is checked every two seconds, which may fall into a change, and
				// again into one that takes long; but not once for each observer.
				require.Less(t, metric("requests").Max, int64(n))
			case regime == "slow-mixed": // there some come later than the count
			case name == "herd":
				require.Equal(t, []int64{int64(n), int64(n)}, metric("events").Samples)
			default:
				require.GreaterOrEqual(t, metric("requests").Min, int64(2*n))
			}
		}
	})
}

// Parts add up to the whole, and none has more slow observers than observers.
func TestShare(t *testing.T) {
	for _, whole := range []CrowdSize{{}, {Observers: 1, Slow: 1}, {Observers: 10, Slow: 1}, {Observers: 7, Slow: 7}, {Observers: 10_000, Slow: 1_000}} {
		for n := 1; n < 9; n++ {
			var sum CrowdSize
			for i := range n {
				part := whole.share(i, n)
				require.LessOrEqual(t, part.Slow, part.Observers, "%v in %d", whole, n)
				sum.Observers += part.Observers
				sum.Slow += part.Slow
			}
			require.Equal(t, whole, sum)
		}
	}
}
