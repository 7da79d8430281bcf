package bench

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAbreast: each once, bounded, and the first error ends it.
func TestAbreast(t *testing.T) {
	var mu sync.Mutex
	called := map[int]int{}
	busy, most := 0, 0
	err := abreast(t.Context(), 500, func(_ context.Context, i int) error {
		mu.Lock()
		called[i]++
		busy++
		most = max(most, busy)
		mu.Unlock()
		runtime.Gosched()
		mu.Lock()
		busy--
		mu.Unlock()
		return nil
	})
	require.NoError(t, err)
	require.Len(t, called, 500)
	require.LessOrEqual(t, most, abreastLimit)

	broken := errors.New("broken")
	var calls atomic.Int64
	err = abreast(t.Context(), 100_000, func(context.Context, int) error {
		calls.Add(1)
		return broken
	})
	require.ErrorIs(t, err, broken)
	require.LessOrEqual(t, calls.Load(), int64(abreastLimit))

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	require.ErrorIs(t, abreast(ctx, 3, func(context.Context, int) error { return nil }), broken)
}

// TestFewer: never more than asked for, never none, and all that somebody asked for.
func TestFewer(t *testing.T) {
	for _, c := range []struct{ rounds, n, want int }{
		{5, 10, 5}, {5, 600, 5}, {5, 1000, 3}, {5, 4000, 1}, {1, 10, 1}, {1, 100_000, 1}, {60, 1000, 36},
	} {
		require.Equal(t, c.want, (&run{}).fewer(c.rounds, c.n), "%d rounds of %d", c.rounds, c.n)
	}
	require.Equal(t, 5, (&run{exact: true}).fewer(5, 4000), "asked for")
}
