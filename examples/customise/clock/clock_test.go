package clock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/examples/customise/clock"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Requirement 33: everything that is fixed in etcd's concurrency package can be changed.
func TestMain(m *testing.M) { etcdtest.Main(m) }

func TestFast(t *testing.T) {
	hand := &clock.Hand{}
	fast := clock.Fast{Clock: hand, By: 50}
	start := fast.Now()
	hand.Turn(10 * time.Second)
	require.Equal(t, 10500*time.Millisecond, fast.Now()-start)

	// Never backwards, over a real clock as well.
	boot := clock.Fast{Clock: lease.Boot(), By: 50}
	for last, i := boot.Now(), 0; i < 1000; i++ {
		now := boot.Now()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
}

func TestHandNeverRunsBackwards(t *testing.T) {
	require.Panics(t, func() { (&clock.Hand{}).Turn(-1) })
}
