package concurrency_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/compat/concurrency"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Resign, Unlock and Close block for at most the session's TTL: that of the lease, also if it is one
// of WithLease.
func TestBlocksForAtMostTheTTL(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	ctx := etcdtest.Context(t)
	granted, err := c.Client(t).Grant(ctx, 5) // as long as a busy machine may stand still
	require.NoError(t, err)
	cli := c.Client(t)
	var silent atomic.Bool
	cli.KV = etcdtest.WithTxns(cli.KV, func(txn *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		if silent.Load() {
			<-txn.Context.Done()
			return nil, txn.Context.Err()
		}
		return txn.Commit(txn.Context)
	})
	cli.Lease = silentRevocation{cli.Lease}
	s, err := concurrency.NewSession(cli, concurrency.WithLease(granted.ID))
	require.NoError(t, err)
	e, m := concurrency.NewElection(s, t.Name()), concurrency.NewMutex(s, t.Name()+"-m")
	require.NoError(t, e.Campaign(ctx, "v"))
	require.NoError(t, m.Lock(ctx))
	silent.Store(true)
	begun := time.Now()
	resigned, unlocked := etcdtest.Go(func() error { return e.Resign(ctx) }), etcdtest.Go(func() error { return m.Unlock(ctx) })
	require.ErrorIs(t, etcdtest.Take(t, resigned, "the end of Resign"), context.DeadlineExceeded)
	require.ErrorIs(t, etcdtest.Take(t, unlocked, "the end of Unlock"), context.DeadlineExceeded)
	require.ErrorIs(t, s.Close(), context.DeadlineExceeded)
	require.Less(t, time.Since(begun), 30*time.Second, "the TTL is 5 s")
}

// silentRevocation does not answer revocations.
type silentRevocation struct{ clientv3.Lease }

func (silentRevocation) Revoke(ctx context.Context, _ clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
