package peers_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

var everySystem = flag.Bool("peers.all", false, "measure all systems, not only Eldest and two that the seed chooses")

// others is how many systems besides Eldest an ordinary run measures: a fourth of them.
const others = 2

// share returns the names of the systems that this run measures; NATS, whose servers need seconds to replace their leader,
// is the last. ELDEST_SEED repeats the choice of the run that has logged it.
func share(t *testing.T) []string {
	t.Helper()
	const always, slow = "eldest", "nats"
	require.Subset(t, peer.Names, []string{always, slow})
	if *everySystem {
		return peer.Names
	}
	seed := rand.Uint64()
	if text := os.Getenv("ELDEST_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "ELDEST_SEED")
	}
	rest := slices.DeleteFunc(slices.Clone(peer.Names), func(name string) bool { return name == always })
	drawn := rand.New(rand.NewPCG(seed, 0))
	drawn.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	chosen := append([]string{always}, rest[:others]...)
	if i := slices.Index(chosen, slow); i > 0 {
		chosen = append(slices.Delete(chosen, i, i+1), slow)
	}
	t.Logf("ELDEST_SEED=%d chooses %v", seed, chosen)
	return chosen
}
