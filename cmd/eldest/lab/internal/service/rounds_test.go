package service

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each round has each step once: the first in the order of the plan, the others in one that the
// seed decides.
func TestRounds(t *testing.T) {
	rounds := func(n int, seed uint64) (all []string) {
		for _, s := range inRounds((&plan{}).steps(), n, seed) {
			all = append(all, s.Title)
		}
		return all
	}
	round := rounds(1, 1)
	three := rounds(3, 1)
	require.Len(t, three, 3*len(round))
	require.Equal(t, round, three[:len(round)])
	require.Equal(t, three, rounds(3, 1), "the same seed")
	orders := map[string]bool{}
	for seed := range uint64(20) {
		for next := range slices.Chunk(rounds(3, seed)[len(round):], len(round)) {
			require.ElementsMatch(t, round, next)
			orders[strings.Join(next, ", ")] = true
		}
	}
	require.Greater(t, len(orders), 10, "of 120 orders in 40 rounds")
}
