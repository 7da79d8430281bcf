package concurrency_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/compat/concurrency"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Close returns etcd's error for a lease that did not exist any more, also if etcd has refused an
// earlier attempt.
func TestCloseAfterARefusedAttempt(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	cli := c.Client(t)
	busy := &busyOnce{Lease: cli.Lease}
	cli.Lease = busy
	s, err := concurrency.NewSession(cli, concurrency.WithTTL(60))
	require.NoError(t, err)
	require.NoError(t, etcdtest.Err(c.Client(t).Revoke(etcdtest.Context(t), s.Lease())))
	require.Equal(t, rpctypes.ErrLeaseNotFound, s.Close())
	require.True(t, busy.asked.Load())
}

// busyOnce refuses the first revocation.
type busyOnce struct {
	clientv3.Lease
	asked atomic.Bool
}

func (b *busyOnce) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	if b.asked.CompareAndSwap(false, true) {
		return nil, rpctypes.ErrTooManyRequests
	}
	return b.Lease.Revoke(ctx, id)
}
