package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// The load says what was written, and its keys are on a lease, lest they stay behind when
// the run is killed.
func TestLoad(t *testing.T) {
	t.Parallel()
	ctx, cli := testContext(t), etcdtest.Shared(t).Client(t)
	r := testRun(t)
	stop, err := r.load(ctx, "loaded", 100)
	require.NoError(t, err)
	keys := func() *clientv3.GetResponse {
		got, err := cli.Get(ctx, r.name+"-load/", clientv3.WithPrefix())
		require.NoError(t, err)
		return got
	}
	for len(keys().Kvs) == 0 { // until the first is written, or ctx ends
		time.Sleep(time.Millisecond)
	}
	for _, kv := range keys().Kvs {
		require.NotZero(t, kv.Lease)
	}
	stop()
	require.Empty(t, keys().Kvs)
	written := r.report.Setup.Written["loaded"]
	require.Positive(t, written.PerSecond)
	require.Zero(t, written.Failed)
}
