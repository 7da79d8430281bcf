package storm_test

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/witness"
)

var (
	lasts = flag.Duration("storm.for", 0, "how long the storm lasts; 0: there is none, for it judges how many calls come through in a second")
	seed  = flag.Uint64("storm.seed", 0, "what is drawn: faults, calls; 0: another one each time")
)

const (
	nodes = 3
	ttl   = 2 * time.Second // of their leases
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStorm is the storm; see the package comment for what must hold.
func TestStorm(t *testing.T) {
	if *lasts == 0 {
		t.Skip("-storm.for is 0: it wants the machine for itself")
	}
	draw := *seed
	if draw == 0 {
		draw = rand.Uint64N(1_000_000) + 1
	}
	t.Logf("seed %d", draw)
	s := newStorm(t, ttl, draw)
	changes := s.run(*lasts, true)
	lasted := time.Since(s.begin)
	verdicts, counts := s.judge(lasted, true, changes)
	t.Logf("after %v:\n%s", lasted.Round(time.Second), strings.Join(append(counts, story.Style{}.Verdicts(verdicts)...), "\n"))
	for _, v := range story.Failed(verdicts) {
		t.Errorf("seed %d: not so: %s", draw, v.Name)
	}
}

// A service breaks every guarantee, without any fault, and each violation is found.
func TestStormNoticesWhatIsWrong(t *testing.T) {
	t.Setenv(witness.Mutant, "1")
	s := newStorm(t, 15*ttl, 1) // so that no lease expires
	s.hold = time.Second        // the last streams are awaited
	changes := s.run(3*time.Second, false)
	verdicts, counts := s.judge(time.Since(s.begin), false, changes)
	t.Log(strings.Join(append(counts, story.Style{}.Verdicts(verdicts)...), "\n"))
	found := make(map[string]string)
	for _, v := range verdicts {
		found[v.Name] = strings.Join(v.Problems, "\n")
	}
	for _, wrong := range []struct{ verdict, problem string }{
		{"no acknowledged write is lost", "but is not in the store"},
		{"no attempt is applied twice", "was applied 2 times"},
		{"no refused write is applied", "but applied, at"},
		{promises, "could have waited"},
		{promises, "shed, though its caller is modest"},
		{promises, "undocumented: DataLoss"},
		{promises, "begun more than once"},
	} {
		require.Contains(t, found[wrong.verdict], wrong.problem, wrong.verdict)
	}
	for _, name := range []string{"no write of a deposed leader", orderly} {
		require.Empty(t, found[name], name)
	}
}
