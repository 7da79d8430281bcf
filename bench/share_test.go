package bench

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

var everyCase = flag.Bool("bench.all", false, "measure every contender under every fault, not a share that the seed chooses")

// drawn returns a number for the choice of a share of the cases: ELDEST_SEED repeats the choice of the run that has
// logged it.
func drawn(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("ELDEST_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "ELDEST_SEED")
	}
	t.Logf("ELDEST_SEED=%d", seed)
	return seed
}

// choose returns one of the cases, for a seed and a name that has others than the next name.
func choose[T any](seed uint64, name string, cases ...T) T {
	stream := uint64(0)
	for _, b := range []byte(name) {
		stream = stream*31 + uint64(b)
	}
	return cases[rand.New(rand.NewPCG(seed, stream)).IntN(len(cases))]
}
