package etcdtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// steady is a cluster whose members keep their leader on a busy machine: tests that depend on which
// member leads etcd must not meet an unexpected election.
var steady = etcdtest.Config{Members: 3, Heartbeat: 50 * time.Millisecond, Election: time.Second}

func TestSharedServes(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	_, err := cli.Put(etcdtest.Context(t), t.Name(), "v")
	require.NoError(t, err)
	require.Same(t, etcdtest.Shared(t), etcdtest.Shared(t))
}
