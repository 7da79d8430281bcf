package retry_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/internal/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestJittered(t *testing.T) {
	const ms = time.Millisecond
	backoff := retry.Jittered(25*ms, time.Second)
	for attempt, step := range map[int]time.Duration{
		-1: 25 * ms, 0: 25 * ms, 1: 50 * ms, 2: 100 * ms, 3: 200 * ms, 4: 400 * ms, 5: 800 * ms, 6: time.Second, 7: time.Second,
		1000: time.Second, math.MaxInt: time.Second,
	} {
		lowest, highest := time.Duration(math.MaxInt64), time.Duration(0)
		for range 2000 {
			pause := backoff(attempt)
			require.Greater(t, pause, step/2, "attempt %d: too early", attempt)
			require.LessOrEqual(t, pause, step, "attempt %d: too late", attempt)
			lowest, highest = min(lowest, pause), max(highest, pause)
		}
		require.Less(t, lowest, step*6/10, "attempt %d: all late", attempt)
		require.Greater(t, highest, step*9/10, "attempt %d: all early", attempt)
	}
}

func TestJitteredOfTinySteps(t *testing.T) {
	for range 100 {
		require.EqualValues(t, 1, retry.Jittered(1, 1)(5))
		require.Zero(t, retry.Jittered(0, 0)(5))
		require.LessOrEqual(t, retry.Jittered(time.Hour, time.Second)(3), time.Second, "over the limit")
	}
}

func TestSpread(t *testing.T) {
	for range 1000 {
		d := retry.Spread(time.Second, 100*time.Millisecond)
		require.Greater(t, d, 900*time.Millisecond)
		require.LessOrEqual(t, d, time.Second)
	}
	require.Equal(t, time.Second, retry.Spread(time.Second, 0))
	require.Equal(t, time.Second, retry.Spread(time.Second, -1))
}

// TestRegression28HandfulOfRounds: three seconds of failures are 5 to 11 attempts, not hundreds.
func TestRegression28HandfulOfRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backoff := retry.Default()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		attempts := 0
		for retry.Sleep(ctx, backoff(attempts)) == nil {
			attempts++
		}
		require.GreaterOrEqual(t, attempts, 5)
		require.LessOrEqual(t, attempts, 11)
	})
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		require.NoError(t, retry.Sleep(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(begun))
		require.NoError(t, retry.Sleep(t.Context(), 0))
		require.NoError(t, retry.Sleep(t.Context(), -time.Second))

		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		begun = time.Now()
		require.ErrorIs(t, retry.Sleep(ctx, time.Hour), cause)
		require.Equal(t, time.Second, time.Since(begun))
	})
}

// TestSleepWithADeadContext: Sleep never returns nil if the context has ended, however short the
// pause.
func TestSleepWithADeadContext(t *testing.T) {
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	for range 500 {
		require.ErrorIs(t, retry.Sleep(dead, 0), context.Canceled)
		require.ErrorIs(t, retry.Sleep(dead, -1), context.Canceled)
	}
}

// The pauses of a user's back-off are at least Least.
func TestOr(t *testing.T) {
	fixed := func(d time.Duration) retry.Backoff { return func(int) time.Duration { return d } }
	for given, want := range map[time.Duration]time.Duration{
		-time.Hour: retry.Least, 0: retry.Least, retry.Least: retry.Least, time.Minute: time.Minute,
	} {
		require.Equal(t, want, retry.Or(fixed(given), fixed(time.Hour))(3), "%v", given)
	}
	require.Equal(t, time.Hour, retry.Or(nil, fixed(time.Hour))(3))
}
