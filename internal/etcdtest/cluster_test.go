package etcdtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// within is a context for what must happen soon.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestSharedServes(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	_, err := cli.Put(within(t), t.Name(), "v")
	require.NoError(t, err)
	require.Same(t, etcdtest.Shared(t), etcdtest.Shared(t))
}
