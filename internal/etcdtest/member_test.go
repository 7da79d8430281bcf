package etcdtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestKillAndRestartWithData(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, steady)
	ctx := etcdtest.Context(t)
	lead, err := c.Leader(ctx)
	require.NoError(t, err)
	old := c.ClientTo(t, lead)
	_, err = old.Put(ctx, "k", "before")
	require.NoError(t, err)

	require.NoError(t, c.Member(lead).Kill())
	require.ErrorIs(t, c.Member(lead).Kill(), etcdtest.ErrState)
	require.False(t, c.Member(lead).Running())
	next, err := c.Leader(ctx)
	require.NoError(t, err)
	require.NotEqual(t, lead, next)
	_, err = c.ClientTo(t, next).Put(ctx, "k", "after")
	require.NoError(t, err)

	require.NoError(t, c.Member(lead).Restart(ctx))
	require.ErrorIs(t, c.Member(lead).Restart(ctx), etcdtest.ErrState)
	got, err := old.Get(ctx, "k") // the same endpoint, and the same client finds it again
	require.NoError(t, err)
	require.Equal(t, "after", string(got.Kvs[0].Value))
	require.EqualValues(t, 2, got.Kvs[0].Version)
}

func TestKillAllAndRestartTogether(t *testing.T) {
	t.Parallel()
	five := steady
	five.Members = 5
	c := etcdtest.Start(t, five)
	ctx := etcdtest.Context(t)
	cli := c.Client(t)
	_, err := cli.Put(ctx, "k", "v")
	require.NoError(t, err)
	for i := range c.Size() {
		require.NoError(t, c.Member(i).Kill())
	}
	require.NoError(t, c.Restart(ctx, 0, 1, 2, 3, 4))
	got, err := cli.Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(got.Kvs[0].Value))
}

func TestStopAndCont(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	cli := c.Client(t)
	m := c.Member(0)
	require.ErrorIs(t, m.Cont(), etcdtest.ErrState)
	require.NoError(t, m.Stop())
	require.ErrorIs(t, m.Stop(), etcdtest.ErrState)

	short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := cli.Get(short, "k")
	require.Error(t, err, "a stopped member answered")

	require.NoError(t, m.Cont())
	lease, err := cli.Grant(etcdtest.Context(t), 1)
	require.NoError(t, err)
	require.EqualValues(t, 1, lease.TTL, "leases are as short as etcd's timeouts allow")

	require.NoError(t, m.Stop())
	require.NoError(t, m.Kill(), "a stopped member")
	require.NoError(t, m.Restart(etcdtest.Context(t)))
	require.NoError(t, m.Restore(etcdtest.Context(t), func(string, string) error { return nil }), "without data")
}

func TestQuotaRaisesNoSpace(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Settings: map[string]any{"quota-backend-bytes": 1 << 20}})
	cli := c.Client(t)
	value := string(make([]byte, 256<<10))
	require.Eventually(t, func() bool {
		_, err := cli.Put(etcdtest.Context(t), "k", value)
		return errors.Is(err, rpctypes.ErrNoSpace)
	}, etcdtest.Patience, time.Millisecond)
}
