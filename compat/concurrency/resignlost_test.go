package concurrency_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/compat/concurrency"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A session ends, because the key of one election was deleted, while another election resigns and its
// deletion is not sent. Resign then returns only when the key is deleted.
//
// The test fails if Resign does not repeat what the end of the session has interrupted.
func TestResignWhileTheSessionEnds(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	cli := c.Client(t)
	resigning := make(chan struct{})
	var hold atomic.Bool
	cli.KV = etcdtest.WithTxns(cli.KV, func(txn *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		if hold.CompareAndSwap(true, false) { // the deletion is lost on its way
			close(resigning)
			<-txn.Context.Done()
			return nil, txn.Context.Err()
		}
		return txn.Commit(txn.Context)
	})
	s := session(t, cli)
	ctx := etcdtest.Context(t)
	one, two := concurrency.NewElection(s, t.Name()+"-1"), concurrency.NewElection(s, t.Name()+"-2")
	require.NoError(t, one.Campaign(ctx, "v"))
	require.NoError(t, two.Campaign(ctx, "v"))
	hold.Store(true)
	resigned := etcdtest.Go(func() error { return two.Resign(ctx) })
	etcdtest.Take(t, resigning, "the deletion")
	_, err := c.Client(t).Delete(ctx, one.Key())
	require.NoError(t, err)
	etcdtest.Take(t, s.Done(), "the end of the session")
	require.NoError(t, etcdtest.Take(t, resigned, "the resignation"), "the key was not deleted")
	require.Zero(t, count(t, c.Client(t), t.Name()+"-2/"), "the key remains")
}
