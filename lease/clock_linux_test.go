package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Row 14: the default clock is the clock that continues during a suspend. Its jump cannot be shown
// without a suspend, but which clock it is can: CLOCK_BOOTTIME counts from the boot, Go's monotonic
// clock from the start of the program.
//
// Fails if Boot, the default or the clock of a Liveness is Go's monotonic clock.
func TestRegression14ClockOfSuspend(t *testing.T) {
	read := func() time.Duration {
		var ts unix.Timespec
		require.NoError(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts))
		return time.Duration(ts.Nano())
	}
	for what, clock := range map[string]Clock{"Boot": Boot(), "the default": Config{}.filled().Clock, "a pulse's": NewLiveness(time.Second).clock} {
		before := read()
		now := clock.Now()
		require.GreaterOrEqual(t, now, before, what)
		require.LessOrEqual(t, now, read(), what)
	}
}
