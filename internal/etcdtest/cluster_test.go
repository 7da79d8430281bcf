package etcdtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// steady is a cluster whose members are not easily taken for dead: a test that names who
// leads etcd must not meet an election that a busy machine called.
var steady = etcdtest.Config{Members: 3, Heartbeat: 50 * time.Millisecond, Election: time.Second}

func TestSharedServes(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	_, err := cli.Put(etcdtest.Context(t), t.Name(), "v")
	require.NoError(t, err)
	require.Same(t, etcdtest.Shared(t), etcdtest.Shared(t))
}
