package etcdtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestRecorder(t *testing.T) {
	var rec etcdtest.Recorder
	cli := etcdtest.Shared(t).Client(t, rec.Attach)
	key := t.Name()
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	defer cancel()

	lease, err := cli.Grant(ctx, 60)
	require.NoError(t, err)
	_, err = cli.Txn(ctx).Then(clientv3.OpPut(key, "v", clientv3.WithLease(lease.ID))).Commit()
	require.NoError(t, err)
	_, err = cli.KeepAliveOnce(ctx, lease.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"LeaseGrant", "Txn", "LeaseKeepAlive"}, rec.Methods())
	txn := rec.Calls("Txn")[0].Request.(*etcdserverpb.TxnRequest)
	require.Equal(t, key, string(txn.Success[0].GetRequestPut().Key))

	rec.Reset()
	watch := cli.Watch(ctx, key)
	_, err = cli.Revoke(ctx, lease.ID)
	require.NoError(t, err)
	<-watch
	require.Equal(t, 1, rec.Count("Watch"))
	require.Equal(t, 2, rec.Count())
	events := rec.Events()
	require.Len(t, events, 1)
	require.Equal(t, clientv3.EventTypeDelete, events[0].Type)
}
