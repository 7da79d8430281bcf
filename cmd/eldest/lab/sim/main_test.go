package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
)

// Which scenarios to run. The variables of the environment are for runs over
// many packages, which do not all know the flags; a flag wins over its variable.
var (
	seeds     = flag.Int("sim.seeds", env("ELDEST_SIM_SEEDS", 0), "how many seeded scenarios to run; 0: 200")
	seed      = flag.Int("sim.seed", env("ELDEST_SIM_SEED", -1), "the one seed to run")
	first     = flag.Int("sim.first", env("ELDEST_SIM_FIRST", 0), "the first of the seeds to run")
	styleName = flag.String("sim.style", string(ordinary), "the style of the scenarios: ordinary, dense or quiet")
	implName  = flag.String("sim.impl", contender.Eldest, "whose election: eldest, drop-in or concurrency")
	procs     = flag.Int("sim.procs", runtime.NumCPU(), "how many processes run scenarios at once")
	out       = flag.String("sim.out", "", "the file to which a worker process appends what became of its scenarios; for use by the tests themselves")
)

func TestMain(m *testing.M) {
	// Each scenario makes a small heap and drops it: collecting less often saves
	// a tenth of the time.
	debug.SetGCPercent(1000)
	flag.Parse()
	if *seeds < 0 || *first < 0 || *seed < -1 || *procs < 1 {
		// Anything else in their place would look like success.
		fmt.Fprintf(os.Stderr, "-sim.seeds %d, -sim.first %d, -sim.seed %d, -sim.procs %d: none can be negative, and it takes a process\n", *seeds, *first, *seed, *procs)
		os.Exit(2)
	}
	goleak.VerifyTestMain(m)
}

// env reads a number from the environment; nonsense there stops the run, since
// running something else in its place would look like success.
func env(name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s=%q is not a number\n", name, text)
		os.Exit(2)
	}
	return n
}

// chosen returns the seeds to run: [from, to).
func chosen() (from, to int) {
	n := *seeds
	switch {
	case *seed >= 0:
		return *seed, *seed + 1
	case n > 0:
	default:
		n = 200
	}
	return *first, *first + n
}

// chosenStyle and chosenImpl are what the flags name.
func chosenStyle(t *testing.T) style {
	for _, s := range []style{ordinary, dense, quiet} {
		if string(s) == *styleName {
			return s
		}
	}
	t.Fatalf("no style is named %q", *styleName)
	return ""
}

func chosenImpl(t *testing.T) contender.Contender { return named(t, *implName) }

// impls are the contenders that can be tried.
var impls = []string{contender.Eldest, contender.DropIn, contender.Concurrency}

func named(t *testing.T, name string) contender.Contender {
	require.Contains(t, impls, name, "no implementation is named %q", name)
	c, err := contender.Named(name)
	require.NoError(t, err)
	return c
}

// concurrency is etcd's own package. Its known faults are what the checkers prove
// themselves on.
func concurrency(t *testing.T) contender.Contender { return named(t, contender.Concurrency) }
