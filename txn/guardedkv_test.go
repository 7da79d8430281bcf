package txn_test

import (
	"context"
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

// increment is code that only uses a clientv3.KV, without elections.
func increment(ctx context.Context, kv clientv3.KV, key string) error {
	for {
		resp, err := kv.Get(ctx, key)
		if err != nil {
			return err
		}
		n, rev := 0, int64(0)
		if len(resp.Kvs) > 0 {
			rev = resp.Kvs[0].ModRevision
			if n, err = strconv.Atoi(string(resp.Kvs[0].Value)); err != nil {
				return err
			}
		}
		put, err := kv.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", rev)).
			Then(clientv3.OpPut(key, strconv.Itoa(n+1))).
			Commit()
		if err != nil || put.Succeeded {
			return err
		}
	}
}

// Row 17.
func TestExistingCodeWithTheGuardedKVCannotWriteAfterTheTenure(t *testing.T) {
	s := newStage(t)
	e, g := s.leader()
	x := s.data("counter")
	kv := g.KV(s.Client)
	for range 3 {
		require.NoError(t, increment(s.Ctx, kv, x))
	}
	value, _ := s.Value(x)
	require.Equal(t, "3", value)

	s.Remove(g.Key)
	require.ErrorIs(t, increment(s.Ctx, kv, x), eldest.ErrDeposed)
	// Elected again with the same key and value: the old KV still refuses.
	again, err := queue.Enter(s.Ctx, s.Client, e)
	require.NoError(t, err)
	require.ErrorIs(t, increment(s.Ctx, kv, x), eldest.ErrDeposed)
	value, _ = s.Value(x)
	require.Equal(t, "3", value)

	g.Token = again.Token
	require.NoError(t, increment(s.Ctx, g.KV(s.Client), x))
	value, _ = s.Value(x)
	require.Equal(t, "4", value)
}

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

// A namespaced client works with everything: queue, proclaim, guard.
func TestNamespacedClient(t *testing.T) {
	s := newStage(t)
	const space = "/prod/"
	kv := namespace.NewKV(s.Client, space)
	a, b := s.entry("a"), s.entry("b")
	x := s.data("x")

	pa, err := queue.EnterAlone(s.Ctx, kv, a)
	require.NoError(t, err)
	require.True(t, pa.First())
	pb, err := queue.Enter(s.Ctx, kv, b)
	require.NoError(t, err)
	require.Equal(t, a.Key(), pb.Ahead[0].Key, "without the namespace")
	_, absent := s.Value(space + a.Key())
	require.False(t, absent)
	_, absent = s.Value(a.Key())
	require.True(t, absent)

	require.NoError(t, etcdtest.Err(txn.Proclaim(s.Ctx, kv, b, pb.Token)))
	g := txn.Guard{Election: s.Election, Key: a.Key(), Token: pa.Token}
	require.NoError(t, etcdtest.Err(g.KV(kv).Put(s.Ctx, x, "1")))
	value, _ := s.Value(space + x)
	require.Equal(t, "1", value)
	resp, err := g.Txn(s.Ctx, kv).If(clientv3.Compare(clientv3.Value(x), "=", "1")).Then(clientv3.OpDelete(x), clientv3.OpGet(b.Key())).Commit()
	require.NoError(t, err)
	require.True(t, resp.Succeeded)
	require.Equal(t, b.Key(), string(resp.Responses[1].GetResponseRange().Kvs[0].Key))

	require.NoError(t, txn.Leave(s.Ctx, kv, a.Key(), pa.Token))
	require.ErrorIs(t, etcdtest.Err(g.KV(kv).Put(s.Ctx, x, "2")), eldest.ErrDeposed)
	next, err := queue.Ahead(s.Ctx, kv, b, pb, 0)
	require.NoError(t, err)
	require.True(t, next.First())
	require.NoError(t, txn.Leave(s.Ctx, kv, b.Key(), pb.Token))
	_, absent = s.Value(space + b.Key())
	require.True(t, absent)
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
