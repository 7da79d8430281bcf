package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
)

func TestDrain(t *testing.T) {
	const rounds, n = 2, 6
	report := measured(t, "drain", Options{Rounds: rounds, Sizes: []int{n}})
	for _, name := range contender.Names() {
		require.Len(t, find(t, report, name, "queue", n, "handover").Samples, rounds*(n-1))
	}
}
