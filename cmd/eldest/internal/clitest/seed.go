package clitest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Seed returns the seed of tests that draw their cases: that in the environment variable ELDEST_SEED, or
// else a random one. The test's log has it, to repeat what failed.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64() >> 33 // short enough to be typed
	if text := os.Getenv("ELDEST_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "ELDEST_SEED")
	}
	t.Logf("ELDEST_SEED=%d", seed)
	return seed
}
