package etcdtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// patience is how long a test waits for what must happen, on a machine that is busy with
// much else.
const patience = time.Minute

// steady is a cluster whose members are not easily taken for dead: a test that names who
// leads etcd must not meet an election that a busy machine called.
var steady = etcdtest.Config{Members: 3, Heartbeat: 50 * time.Millisecond, Election: time.Second}

// within is a context for what must happen soon.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestSharedServes(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	_, err := cli.Put(within(t), t.Name(), "v")
	require.NoError(t, err)
	require.Same(t, etcdtest.Shared(t), etcdtest.Shared(t))
}
