package service

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
)

// Each round has each act once: the first in the order of the script, the others in one that the
// seed decides.
func TestRounds(t *testing.T) {
	titles := func(scenes []scene) (all []string) {
		for _, sc := range scenes {
			all = append(all, sc.title)
		}
		return all
	}
	round := titles(script)
	if !offspring.Suspends {
		round = slices.DeleteFunc(round, func(title string) bool { return title == suspended })
	}
	require.Equal(t, round, titles(acts(1, 1)))
	three := titles(acts(3, 1))
	require.Len(t, three, 3*len(round))
	require.Equal(t, round, three[:len(round)])
	for i := range 3 {
		require.ElementsMatch(t, round, three[i*len(round):(i+1)*len(round)])
	}
	require.Equal(t, three, titles(acts(3, 1)), "the same seed")
	orders := map[string]bool{}
	for seed := range uint64(20) {
		for i := range 2 {
			orders[strings.Join(titles(acts(3, seed))[(i+1)*len(round):(i+2)*len(round)], ", ")] = true
		}
	}
	require.Greater(t, len(orders), 10, "of 120 orders in 40 rounds")
}
