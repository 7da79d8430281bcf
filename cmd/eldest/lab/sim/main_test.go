package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// Which scenarios to run.
var (
	seeds     = flag.Int("sim.seeds", 200, "how many seeded scenarios to run")
	seed      = flag.Int("sim.seed", -1, "the one seed to run")
	first     = flag.Int("sim.first", 0, "the first of the seeds to run")
	styleName = flag.String("sim.style", string(ordinary), "the style of the scenarios: ordinary, dense or quiet")
	implName  = flag.String("sim.impl", contender.Eldest, "whose election: eldest, elector, drop-in or concurrency")
	out       = flag.String("sim.out", "", "the file to which a worker process appends what became of its scenarios; for use by the tests themselves")
)

// The reference run. Its results are kept in the directory, a file for each range of seeds, so that
// the same command continues a run that was stopped. The numbers give a million tenures, and more than a
// virtual year.
var (
	recordDir    = flag.String("sim.record", "", "the directory of a reference run: seeds of all styles")
	recordCounts = map[style]*int{
		ordinary: flag.Int("sim.ordinary", 10_000, "of a reference run: how many ordinary scenarios"),
		dense:    flag.Int("sim.dense", 900, "of a reference run: how many dense scenarios"),
		quiet:    flag.Int("sim.quiet", 50, "of a reference run: how many quiet scenarios"),
	}
)

func TestMain(m *testing.M) {
	// Each scenario makes a small heap and drops it: collecting less often saves
	// a tenth of the time.
	debug.SetGCPercent(1000)
	flag.Parse()
	if *seeds < 1 || *first < 0 || *seed < -1 {
		// Running with other values would look like success.
		fmt.Fprintf(os.Stderr, "-sim.seeds %d, -sim.first %d, -sim.seed %d: none can be negative, and it takes a seed\n", *seeds, *first, *seed)
		os.Exit(2)
	}
	goleak.VerifyTestMain(m)
}

// named returns the contender of that name.
func named(t *testing.T, name string) contender.Contender {
	if name == (nodes{}).Name() {
		return nodes{}
	}
	c, err := contender.Named(name)
	require.NoError(t, err)
	require.Contains(t, []string{contender.Eldest, contender.DropIn, contender.Concurrency}, name, "no scenarios are played with it")
	return c
}

// concurrency is etcd's own package. Its known faults test the checkers.
func concurrency(t *testing.T) contender.Contender { return named(t, contender.Concurrency) }

// play runs a scenario in a world of its own.
func play(t *testing.T, p *plan) (r *result) {
	rig.RunWith(t, p.options(), func(w *rig.World) { r = p.play(w) })
	if r == nil {
		t.Fatalf("%s seed %d did not come to its end; its plan:\n%v", p.style, p.seed, p)
	}
	return r
}
