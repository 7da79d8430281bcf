package etcdtest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// Draw returns a source of random numbers for a test that runs a share of its cases. The environment
// variable ELDEST_SEED repeats a run; each test of a run has its own numbers, so that the choices of
// two tests do not depend on each other. A test that is run more than once draws other cases each time,
// unless the variable is set. A test draws once: a second source would have the same numbers.
func Draw(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64N(1 << 32)
	if text := os.Getenv("ELDEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("ELDEST_SEED: %v", err)
		}
	} else { // also in the output of a test that panics or hangs, where a log is not shown
		fmt.Fprintf(os.Stderr, "%s: ELDEST_SEED=%d\n", t.Name(), seed)
	}
	t.Logf("ELDEST_SEED=%d", seed)
	own := fnv.New64a()
	_, _ = own.Write([]byte(t.Name())) // a hash never fails
	return rand.New(rand.NewPCG(seed, own.Sum64()))
}

// All reports whether tests that run a share of their cases must run all of them: the environment variable
// ELDEST_ALL is set.
func All() bool { return os.Getenv("ELDEST_ALL") != "" }

// Share draws n of a test's cases, so that many runs cover what is too expensive for one. With ELDEST_ALL
// it returns all.
func Share[C any](t testing.TB, n int, cases ...C) []C {
	t.Helper()
	if All() {
		return cases
	}
	drawn := slices.Clone(cases)
	Draw(t).Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn[:n:len(drawn)]
}
