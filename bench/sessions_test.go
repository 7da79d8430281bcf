package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSessions: sessions on one client share the questions to the majority, and each is renewed
// about four times in a TTL.
func TestSessions(t *testing.T) {
	const n = 40
	report := measured(t, "sessions", Options{
		Rounds: 1, Sizes: []int{n}, TTLs: []time.Duration{2 * time.Second}, Contenders: []string{"eldest", "concurrency"},
	})
	for _, name := range []string{"eldest", "concurrency"} {
		require.NotNil(t, find(t, report, name, "rest", n, "client-cpu"), name)
		require.Greater(t, find(t, report, name, "rest", n, "renewals").P50, int64(n), name)
	}
	require.LessOrEqual(t, find(t, report, "eldest", "rest", n, "renewals").P50, int64(6*n))
	questions := find(t, report, "eldest", "rest", n, "questions").P50
	require.Positive(t, questions)
	require.Less(t, questions, int64(2*n), "one answer is not for all")
	require.Zero(t, find(t, report, "concurrency", "rest", n, "questions").P50)
}
