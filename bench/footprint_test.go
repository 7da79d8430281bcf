package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFootprint: what can be said of few: how many goroutines a candidate and an
// observer have, and that many elections share one renewal.
func TestFootprint(t *testing.T) {
	const n = 40
	report := measured(t, "footprint", Options{
		Rounds: 1, Sizes: []int{n}, TTLs: []time.Duration{2 * time.Second}, Contenders: []string{"eldest", "concurrency"},
	})
	for _, name := range []string{"eldest", "concurrency"} {
		require.Positive(t, find(t, report, name, "candidate", n, "heap").P50, name)
		require.Positive(t, find(t, report, name, "candidate", n, "goroutines").P50, name)
		require.GreaterOrEqual(t, find(t, report, name, "shared", n, "goroutines in all").P50, int64(n), "%s: the callers'", name)
		require.Positive(t, find(t, report, name, "shared", n, "memory in all").P50, name)
		require.NotNil(t, find(t, report, name, "election", n, "stack"), name)
		require.Positive(t, find(t, report, name, "election", n, "requests").P50, name)
		renewals := find(t, report, name, "election", n, "renewals")
		require.Len(t, renewals.Samples, 1)
		// Ours renews every quarter of the TTL, or up to a tenth of that sooner, so that
		// five may fall into one TTL; the other every third. A busy machine counts for longer
		// than a TTL, but not for so long that each of the elections would be renewed once.
		require.Less(t, renewals.Max, int64(n), "%s renews once for all elections", name)
		require.LessOrEqual(t, find(t, report, name, "election", n, "streams").Max, int64(2), name)
	}
	require.Zero(t, find(t, report, "eldest", "observer", n, "goroutines").P50)
	require.Equal(t, int64(2), find(t, report, "concurrency", "observer", n, "goroutines").P50)
}
