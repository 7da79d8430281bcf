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

// failoverOptions are those of a test: no more rounds than needed to see it work.
func failoverOptions(rounds int) Options {
	return Options{Rounds: rounds, Warmup: -1, Contenders: contender.Names(), TTLs: []time.Duration{failoverTTL}}
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
	t.Parallel()
	report, err := Run(testContext(t), siteAt(etcdtest.Shared(t).Endpoints()), "crash", failoverOptions(3))
	require.NoError(t, err)
	for _, name := range contender.Names() {
		win := report.Find(name, "kill", grantedTTL(t), "win")
		require.NotNil(t, win, name)
		require.Equal(t, "", win.FirstError, name)
		require.Len(t, win.Samples, 3, name)
		require.Positive(t, win.Min, "%s won before the kill", name)
	}
}

// Where nothing can be killed nothing is measured, and that is said before anything is
// sent.
func TestCrashNeedsProcesses(t *testing.T) {
	site := siteAt(etcdtest.Shared(t).Endpoints())
	site.Spawn = nil
	_, err := Run(testContext(t), site, "crash", failoverOptions(1))
	require.ErrorIs(t, err, ErrInvalid)
}

// Every contender fails over when its leader's network is cut; all that tell their
// users of the loss do so; and eldest never has two leaders, which is a promise (G3),
// not a figure.
func TestCut(t *testing.T) {
	t.Parallel()
	report, err := Run(testContext(t), siteAt(etcdtest.Shared(t).Endpoints()), "cut", failoverOptions(3))
	require.NoError(t, err)
	metric := func(name, metric string) *Result { return report.Find(name, "cut", grantedTTL(t), metric) }
	for _, name := range contender.Names() {
		for _, m := range []string{"win", "loss", "gap", "two-leaders"} {
			r := metric(name, m)
			if name == "floor" && m != "win" {
				require.Nil(t, r, "the floor tells nobody")
				continue
			}
			require.NotNil(t, r, "%s of %s", m, name)
			require.Equal(t, "", r.FirstError, name)
			require.Len(t, r.Samples, 3, name)
		}
	}
	require.Equal(t, []int64{0, 0, 0}, metric("eldest", "two-leaders").Samples)
	require.Positive(t, slices.Min(metric("eldest", "gap").Samples))
}

// A leader in another process is cut off in the same way.
func TestCutOfAWorker(t *testing.T) {
	t.Parallel()
	o := failoverOptions(1)
	o.Processes, o.Contenders = 1, []string{"eldest", "concurrency"}
	report, err := Run(testContext(t), siteAt(etcdtest.Shared(t).Endpoints()), "cut", o)
	require.NoError(t, err)
	for _, name := range o.Contenders {
		loss := report.Find(name, "cut", grantedTTL(t), "loss")
		require.NotNil(t, loss, name)
		require.Equal(t, "", loss.FirstError, name)
		require.Len(t, loss.Samples, 1, name)
	}
}
