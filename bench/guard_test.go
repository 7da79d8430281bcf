package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
)

func TestGuard(t *testing.T) {
	const rounds = 5
	report := measured(t, "guard", Options{Rounds: rounds, Warmup: 1})
	for _, name := range contender.Names() {
		put := find(t, report, name, "put", 1, "put")
		require.Equal(t, rounds, put.Rounds)
		require.Positive(t, put.Min)
	}
	require.Len(t, report.Results, len(contender.Names()), "one quantity each")
}
