package bench

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// measured runs a scenario on the shared etcd: no turn of any contender may fail, and
// nothing may be left in etcd.
func measured(t *testing.T, name string, o Options) *Report {
	t.Helper()
	return measuredOn(t, etcdtest.Shared(t), name, o)
}

// measuredOn is measured on an etcd that nobody else uses meanwhile.
func measuredOn(t *testing.T, c *etcdtest.Cluster, name string, o Options) *Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	if s, err := Named(name); err == nil && o.Contenders == nil && s.Defaults.Contenders == nil {
		o.Contenders = contender.Names()
	}
	report, err := Run(ctx, siteOf(c), name, o)
	require.NoError(t, err)
	explained(t, report)
	for _, x := range report.Results {
		require.Zero(t, x.Errors, "%s %s %s: %s", x.Contender, x.Regime, x.Metric, x.FirstError)
		require.Equal(t, len(x.Samples), x.Rounds)
	}
	left, err := c.Client(t).Get(ctx, "eldest-bench-", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	require.Empty(t, left.Kvs)
	return report
}

func siteOf(c *etcdtest.Cluster) Site {
	return Site{Client: clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()}, Members: c.Size()}
}

// find is a result that must be there.
func find(t *testing.T, r *Report, contender, regime string, n int, metric string) *Result {
	t.Helper()
	x := r.Find(contender, regime, n, metric)
	require.NotNil(t, x, "%s %s n=%d %s", contender, regime, n, metric)
	return x
}

func TestJoin(t *testing.T) {
	const rounds, crowd = 7, 12
	report := measured(t, "join", Options{Rounds: rounds, Warmup: 1, Sizes: []int{crowd}})
	for _, name := range contender.Names() {
		for _, regime := range []string{"cold", "live"} {
			win := find(t, report, name, regime, 1, "win")
			require.Equal(t, Nanoseconds, win.Unit)
			require.Equal(t, rounds, win.Rounds)
			require.Positive(t, win.Min)
		}
		// At the very least a lease and a key.
		require.GreaterOrEqual(t, find(t, report, name, "cold", 1, "requests").Min, int64(2))
		require.Positive(t, find(t, report, name, "crowd", crowd, "queued").Min)
		require.Zero(t, find(t, report, name, "crowd", crowd, "errors").Max)
	}
	// A lease, a key, and a watch of the key. In a round or two the watch may come too late to
	// be counted, or the end of the one before it be counted as well.
	require.Equal(t, int64(3), find(t, report, "eldest", "cold", 1, "requests").P50)
}
