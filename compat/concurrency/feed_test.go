package concurrency_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/compat/concurrency"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func keyOf(s *concurrency.Session, pfx string) string { return fmt.Sprintf("%s/%x", pfx, s.Lease()) }

// Changes of one transaction are one change: a leader whose key is deleted is not reported.
func TestOneTransaction(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	ctx := etcdtest.Context(t)
	one, two := session(t, cli), session(t, cli)
	first, second := concurrency.NewElection(one, t.Name()), concurrency.NewElection(two, t.Name())
	values := concurrency.NewElection(session(t, cli), t.Name()).Observe(ctx)
	require.NoError(t, first.Campaign(ctx, "first"))
	require.Equal(t, "first", string(etcdtest.Take(t, values, "the first").Kvs[0].Value))
	waiting := etcdtest.Go(func() error { return second.Campaign(ctx, "second") })
	etcdtest.Eventually(t, func() bool { return count(t, cli, t.Name()+"/") == 2 }, "a waiter")
	require.NoError(t, etcdtest.Err(cli.Txn(ctx).Then(clientv3.OpDelete(first.Key()), clientv3.OpPut(keyOf(two, t.Name()), "changed", clientv3.WithIgnoreLease())).Commit()))
	require.NoError(t, etcdtest.Take(t, waiting, "the win"))
	got := etcdtest.Take(t, values, "the next leader")
	require.Equal(t, "changed", string(got.Kvs[0].Value))
	require.EqualValues(t, 2, got.Kvs[0].Version)
	require.Equal(t, second.Rev(), got.Kvs[0].CreateRevision)
}

// Observers also end with their client, whether their channels are read or not.
func TestObserversEnd(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	cli, err := c.Dial()
	require.NoError(t, err)
	s, err := concurrency.NewSession(cli)
	require.NoError(t, err)
	e := concurrency.NewElection(s, t.Name())
	require.NoError(t, e.Campaign(etcdtest.Context(t), "v"))
	unread, empty := e.Observe(context.Background()), concurrency.NewElection(s, t.Name()+"-empty").Observe(context.Background())
	require.NoError(t, cli.Close())
	require.Nil(t, etcdtest.Take(t, empty, "the end"))
	for resp := range unread { // one may have been on its way
		require.NotNil(t, resp)
	}
	etcdtest.Take(t, s.Done(), "the session's end")
}
