package txn_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

// Every method returns the same as the plain client, header included, in one request.
func TestGuardedKVAnswersLikeAPlainOne(t *testing.T) {
	s := newStage(t)
	_, g := s.leader()
	kv := g.KV(s.Client)
	x, y := s.data("x"), s.data("y")

	put, err := kv.Put(s.Ctx, x, "1")
	require.NoError(t, err)
	require.Equal(t, s.revision(), put.Header.Revision)
	put, err = kv.Put(s.Ctx, x, "2", clientv3.WithPrevKV())
	require.NoError(t, err)
	require.Equal(t, "1", string(put.PrevKv.Value))
	require.NoError(t, etcdtest.Err(kv.Put(s.Ctx, y, "3")))
	s.Rec.Reset()

	get, err := kv.Get(s.Ctx, s.data(""), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
	require.NoError(t, err)
	require.Len(t, get.Kvs, 2)
	require.Equal(t, y, string(get.Kvs[0].Key))
	require.Equal(t, int64(2), get.Count)
	require.Equal(t, s.revision(), get.Header.Revision)

	plain, err := s.Admin.Get(s.Ctx, x, clientv3.WithRev(put.Header.Revision-1))
	require.NoError(t, err)
	old, err := kv.Get(s.Ctx, x, clientv3.WithRev(put.Header.Revision-1))
	require.NoError(t, err)
	require.Equal(t, plain.Kvs[0].Value, old.Kvs[0].Value)

	resp, err := kv.Do(s.Ctx, clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpGet(x)}, nil))
	require.NoError(t, err)
	require.True(t, resp.Txn().Succeeded)
	require.NotNil(t, resp.Txn().Header)
	for _, op := range []clientv3.Op{clientv3.OpGet(x), clientv3.OpPut(y, "4"), clientv3.OpDelete(y)} {
		resp, err := kv.Do(s.Ctx, op)
		require.NoError(t, err)
		switch {
		case op.IsGet():
			require.Equal(t, "2", string(resp.Get().Kvs[0].Value))
		case op.IsPut():
			require.NotNil(t, resp.Put().Header)
		default:
			require.Equal(t, int64(1), resp.Del().Deleted)
		}
	}
	deleted, err := kv.Delete(s.Ctx, x, clientv3.WithPrevKV())
	require.NoError(t, err)
	require.Equal(t, int64(1), deleted.Deleted)
	require.Equal(t, "2", string(deleted.PrevKvs[0].Value))
	require.Equal(t, s.revision(), deleted.Header.Revision)
	for _, method := range s.Methods() {
		require.Equal(t, "Txn", method)
	}
}

// A method of the client's KV that this package does not have is refused and sends nothing: a guard
// that a newer client bypasses would be none. GetStream, of clients from 3.7 on, is such a method.
func TestMethodsOfNewerClientsAreRefused(t *testing.T) {
	s := newStage(t)
	guard := txn.Guard{Election: s.Election, Key: s.Election + "/1", Token: 1}
	stream := reflect.ValueOf(guard.KV(s.Client)).MethodByName("GetStream")
	if !stream.IsValid() {
		return // a client before 3.7
	}
	results := stream.Call([]reflect.Value{reflect.ValueOf(s.Ctx), reflect.ValueOf("k")})
	err, _ := results[1].Interface().(error)
	require.ErrorIs(t, err, eldest.ErrInvalid)
	require.ErrorContains(t, err, guard.Key)
	require.Empty(t, s.Methods())
}
