package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestDrain(t *testing.T) {
	t.Parallel()
	const rounds, n = 2, 6
	report := measuredOn(t, etcdtest.Start(t, etcdtest.Config{}), "drain", Options{Rounds: rounds, Sizes: []int{n}})
	for _, name := range contender.Names() {
		require.Len(t, find(t, report, name, "queue", n, "handover").Samples, rounds*(n-1))
	}
}
