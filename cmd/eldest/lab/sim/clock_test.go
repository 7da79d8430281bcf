package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A clock has run at its rate for whoever has read it, and for nobody else.
func TestClockRanForWhoReadIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(1.08)
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, c.ran())
		require.Equal(t, 64800*time.Millisecond, c.Now())
		require.InDelta(t, 1.08, c.ran(), 1e-6)
		c.stop()
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, c.ran(), "it stands still")
		c.jump()
		require.InDelta(t, 1.08, c.ran(), 1e-6)
	})
}
