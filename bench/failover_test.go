package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// failoverTTL is short, since each failover takes one, and not so short that a busy machine
// makes leaders fail before their time.
const failoverTTL = 2 * time.Second

// failovers measures a contender's failovers: no more rounds than needed to see it work.
func failovers(t *testing.T, scenario, name string, rounds, processes int) *Report {
	t.Helper()
	report, err := Run(testContext(t), siteAt(etcdtest.Shared(t).Endpoints()), scenario, Options{
		Rounds: rounds, Warmup: -1, Contenders: []string{name}, TTLs: []time.Duration{failoverTTL}, Processes: processes,
	})
	require.NoError(t, err)
	return report
}

// eachAtOnce has a test for each contender, beside each other: they wait for leases.
func eachAtOnce(t *testing.T, names []string, f func(t *testing.T, name string)) {
	t.Parallel()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, name)
		})
	}
}

// grantedTTL is, in milliseconds, what the cluster makes of failoverTTL: etcd has a least
// one.
func grantedTTL(t *testing.T) int {
	lease, err := etcdtest.Shared(t).Client(t).Grant(testContext(t), int64(failoverTTL/time.Second))
	require.NoError(t, err)
	return int(lease.TTL) * 1000
}

// Every contender fails over when its leader's process is killed, each round counts
// once, and the processes are gone afterwards.
func TestCrash(t *testing.T) {
	eachAtOnce(t, append(contender.Names(), contender.Kept), func(t *testing.T, name string) {
		win := find(t, failovers(t, "crash", name, 3, 0), name, "kill", grantedTTL(t), "win")
		require.Equal(t, "", win.FirstError)
		require.Len(t, win.Samples, 3)
		require.Positive(t, win.Min, "it won before the kill")
	})
}

// Where nothing can be killed nothing is measured, and that is said before anything is
// sent.
func TestCrashNeedsProcesses(t *testing.T) {
	site := siteAt(etcdtest.Shared(t).Endpoints())
	site.Spawn = nil
	_, err := Run(testContext(t), site, "crash", Options{Rounds: 1})
	require.ErrorIs(t, err, ErrInvalid)
}

// Every contender fails over when its leader's network is cut; all that tell their
// users of the loss do so; and eldest never has two leaders, which is a promise (G3),
// not a figure.
func TestCut(t *testing.T) {
	eachAtOnce(t, contender.Names(), func(t *testing.T, name string) {
		report := failovers(t, "cut", name, 3, 0)
		for _, m := range []string{"win", "loss", "gap", "two-leaders"} {
			if name == "floor" && m != "win" {
				require.Nil(t, report.Find(name, "cut", grantedTTL(t), m), "the floor tells nobody")
				continue
			}
			r := find(t, report, name, "cut", grantedTTL(t), m)
			require.Equal(t, "", r.FirstError)
			require.Len(t, r.Samples, 3)
			if name == "eldest" && m == "two-leaders" {
				require.Equal(t, []int64{0, 0, 0}, r.Samples)
			}
			if name == "eldest" && m == "gap" {
				require.Positive(t, slices.Min(r.Samples))
			}
		}
	})
}

// A leader in another process is cut off in the same way.
func TestCutOfAWorker(t *testing.T) {
	eachAtOnce(t, []string{"eldest", "concurrency"}, func(t *testing.T, name string) {
		loss := find(t, failovers(t, "cut", name, 1, 1), name, "cut", grantedTTL(t), "loss")
		require.Equal(t, "", loss.FirstError)
		require.Len(t, loss.Samples, 1)
	})
}
