package concurrency_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
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

// A session whose lease does not exist blocks for the TTL of WithTTL, which may be longer than the
// longest time.
func TestTheLongestTTL(t *testing.T) {
	t.Parallel()
	s, err := concurrency.NewSession(etcdtest.Shared(t).Client(t), concurrency.WithLease(1<<40), concurrency.WithTTL(math.MaxInt))
	require.NoError(t, err)
	etcdtest.Take(t, s.Done(), "the end of a session without a lease")
	require.Equal(t, rpctypes.ErrLeaseNotFound, s.Close())
}
