package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// TestSessions: sessions on one client share the questions to the majority, and each is renewed
// about four times in a TTL. Each contender is at rest for three TTLs, on an etcd of its own.
func TestSessions(t *testing.T) {
	const n = 40
	eachAtOnce(t, []string{"eldest", "concurrency"}, func(t *testing.T, name string) {
		report := measuredOn(t, etcdtest.Start(t, etcdtest.Config{}), "sessions", Options{
			Rounds: 1, Sizes: []int{n}, TTLs: []time.Duration{2 * time.Second}, Contenders: []string{name},
		})
		require.NotNil(t, find(t, report, name, "rest", n, "client-cpu"))
		renewals := find(t, report, name, "rest", n, "renewals").P50
		questions := find(t, report, name, "rest", n, "questions").P50
		require.Greater(t, renewals, int64(n))
		if name == "concurrency" {
			require.Zero(t, questions)
			return
		}
		require.LessOrEqual(t, renewals, int64(6*n))
		require.Positive(t, questions)
		require.Less(t, questions, int64(2*n), "one answer is not for all")
	})
}
