package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/echo"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Every kind and size of call is measured on every way, by one caller and by several.
func TestForwarding(t *testing.T) {
	t.Parallel()
	m := measure(t, "forwarding", Options{Rounds: 1, Warmup: -1, Sizes: []int{1, 3}, For: 10 * time.Millisecond})
	for _, x := range exchanges() {
		for _, n := range []int{1, 3} {
			for _, way := range []string{echo.Direct, echo.Forwarded, echo.Plain} {
				if x.stream > 0 {
					require.GreaterOrEqual(t, m.of(way, x.regime, n, "bytes").Min, int64(x.size))
					require.Nil(t, m.Find(way, x.regime, n, "call"))
					continue
				}
				require.Positive(t, m.of(way, x.regime, n, "call").Min)
				require.GreaterOrEqual(t, m.of(way, x.regime, n, "call").Rounds, n)
				require.Positive(t, m.of(way, x.regime, n, "rate").Min)
				require.Nil(t, m.Find(way, x.regime, n, "bytes"))
			}
		}
	}
}

// A run ends at the first turn in which a call took another way than the one that is measured: its
// figures would be those of something else.
func TestForwardingOnAnotherWay(t *testing.T) {
	t.Parallel()
	ctx, r := testContext(t), testRun(t, echo.Forwarded)
	service, err := echo.Start(ctx, etcdtest.Shared(t).Client(t), r.name)
	require.NoError(t, err)
	defer service.Close()
	caller, err := service.Caller(echo.Direct)
	require.NoError(t, err)
	defer func() { require.NoError(t, caller.Close()) }()
	turns := 0
	err = try(func() {
		r.measure([]point{{regime: "unary-100B", n: 1, rounds: 100, cold: true}}, func(t *turn) {
			turns++
			t.exchange(service, []*echo.Caller{caller}, exchanges()[0])
		})
	})
	require.ErrorIs(t, err, echo.ErrOtherWay)
	require.Equal(t, 1, turns)
	require.Empty(t, r.conclude().Results)
}
