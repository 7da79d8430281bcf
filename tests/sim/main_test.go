package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// Which scenarios to run. The variables of the environment are for runs over
// many packages, which do not all know the flags; a flag wins over its variable.
var (
	seeds = flag.Int("sim.seeds", env("ELDEST_SIM_SEEDS", 0), "how many seeded scenarios to run; 0: 2000, or 100 with the race detector, or with -short")
	seed  = flag.Int("sim.seed", env("ELDEST_SIM_SEED", -1), "the one seed to run")
	first = flag.Int("sim.first", env("ELDEST_SIM_FIRST", 0), "the first of the seeds to run")
)

func TestMain(m *testing.M) {
	// Each scenario makes a small heap and drops it: collecting less often saves
	// a tenth of the time.
	debug.SetGCPercent(400)
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
	case raceDetector || testing.Short():
		n = 100
	default:
		n = 2000
	}
	return *first, *first + n
}
