package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// These wait for the longest: so they are in the file whose tests are started first.

// failoverTTL is short, since each failover takes that long, and not so short that leaders fail too
// early on a busy machine.
const failoverTTL = 4 * time.Second

// failovers measures a contender's failovers, in as few rounds as show that it works: in all regimes, or in some.
func failovers(t *testing.T, scenario, name string, regimes ...string) measured {
	t.Helper()
	return measure(t, scenario, Options{
		Rounds: 2, Warmup: -1, Contenders: []string{name}, TTLs: []time.Duration{failoverTTL}, Regimes: regimes,
	})
}

// A contender fails over in every regime, and each round counts once; with a keeper or
// heartbeats it does so before the leader's lease can expire. Eldest never has two leaders.
//
// Eldest, alone and with a keeper, fails over in every regime, and so does the shortest heartbeat below. Each other
// contender does so in one that the seed chooses; with ELDEST_ALL, in all.
func TestCrash(t *testing.T) {
	t.Parallel()
	each(t, append(contender.Names(), contender.Kept), func(t *testing.T, name string) {
		crashes(t, name, name == contender.Eldest || name == contender.Kept)
	})
}

// crashes makes a contender's leaders fail in all regimes, or in one that the seed chooses, in each on an etcd of its own:
// a failover is a wait.
func crashes(t *testing.T, name string, all bool) {
	regimes := []string{"kill", "stop", "cut"}
	if name == contender.Kept {
		regimes = []string{"kill", "kill-keeper"}
	}
	if !all {
		regimes = etcdtest.Share(t, 1, regimes...)
	}
	each(t, regimes, func(t *testing.T, regime string) { testCrash(t, name, regime) })
}

func testCrash(t *testing.T, name, regime string) {
	m := failovers(t, "crash", name, regime)
	win := m.of(name, regime, 4000, "win")
	require.Len(t, win.Samples, 2)
	require.Positive(t, win.Min, "it won before the fault")
	if name == "floor" {
		require.Nil(t, m.Find(name, regime, 4000, "two-leaders"), "it does not know")
		return
	}
	two := m.of(name, regime, 4000, "two-leaders")
	require.Len(t, two.Samples, 2)
	if name != "concurrency" && name != "herd" {
		require.Zero(t, two.Sum, regime)
	}
	quick := !slices.Contains(contender.Names(), name) && regime != "kill-keeper"
	require.Equal(t, quick, m.Find(name, regime, 4000, "bound") == nil)
}

// A contender takes part in its own regimes only.
func TestCrashRegimes(t *testing.T) {
	t.Parallel()
	m := failovers(t, "crash", contender.Eldest, "kill-keeper", "stop")
	require.Nil(t, m.Find(contender.Eldest, "kill-keeper", 4000, "win"))
	require.NotNil(t, m.Find(contender.Eldest, "stop", 4000, "win"))
}

// Every contender fails over when its leader's network is cut; every contender that notifies its
// users of a loss does so; and eldest never has two leaders, which is a guarantee (G3), not a
// measurement.
func TestCut(t *testing.T) {
	t.Parallel()
	each(t, contender.Names(), func(t *testing.T, name string) {
		m := failovers(t, "cut", name)
		require.Len(t, m.of(name, "cut", 4000, "win").Samples, 2)
		for _, metric := range []string{"loss", "gap", "two-leaders"} {
			if name == "floor" {
				require.Nil(t, m.Find(name, "cut", 4000, metric), "the floor notifies nobody")
				continue
			}
			require.Len(t, m.of(name, "cut", 4000, metric).Samples, 2)
		}
		if name == "eldest" {
			require.Zero(t, m.of(name, "cut", 4000, "two-leaders").Sum)
			require.Positive(t, m.of(name, "cut", 4000, "gap").Min)
		}
	})
}
