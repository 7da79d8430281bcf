package backoff_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/examples/customise/backoff"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Requirement 33: everything that is fixed in etcd's concurrency package can be changed.
func TestMain(m *testing.M) { etcdtest.Main(m) }

func TestPauses(t *testing.T) {
	const first, limit = 10 * time.Millisecond, time.Second
	full := backoff.Full(first, limit)
	within := backoff.Within(2*time.Second, full)
	for attempt, step := range map[int]time.Duration{0: first, 1: 2 * first, 5: 32 * first, 7: limit, 60: limit, math.MaxInt: limit} {
		low, high := limit, time.Duration(0)
		for range 1000 {
			pause := full(attempt)
			require.LessOrEqual(t, pause, step)
			require.GreaterOrEqual(t, pause, time.Duration(0))
			low, high = min(low, pause), max(high, pause)
			require.LessOrEqual(t, within(attempt), 200*time.Millisecond)
		}
		require.Less(t, low, step/4, "spread to the bottom")
		require.Greater(t, high, step*3/4, "and to the top")
	}
	require.LessOrEqual(t, backoff.Full(time.Hour, time.Second)(0), time.Second)
}
