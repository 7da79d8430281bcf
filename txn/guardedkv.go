package txn

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
)

// KV returns a clientv3.KV that guards every call: code written for a plain KV cannot write or read
// with it after the tenure. Results are those of Txn; each call sends one request.
//
// Compact, which etcd does not allow in transactions, and GetStream of clients from 3.7 on cannot be
// guarded: they return eldest.ErrInvalid.
func (g Guard) KV(kv clientv3.KV) clientv3.KV {
	return guardedKV{KV: g.refusing(), guard: g, kv: kv}
}

// guardedKV has GetStream from the KV that refuses it, because clients before 3.7 do not have the type
// that it returns.
type guardedKV struct {
	clientv3.KV
	guard Guard
	kv    clientv3.KV
}

func (g guardedKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	resp, header, err := g.guard.do(ctx, g.kv, op)
	switch {
	case err != nil:
		return clientv3.OpResponse{}, err
	case op.IsPut():
		put := (*clientv3.PutResponse)(resp.GetResponsePut())
		put.Header = header
		return put.OpResponse(), nil
	case op.IsDelete():
		del := (*clientv3.DeleteResponse)(resp.GetResponseDeleteRange())
		del.Header = header
		return del.OpResponse(), nil
	case op.IsTxn():
		txn := (*clientv3.TxnResponse)(resp.GetResponseTxn())
		txn.Header = header
		return txn.OpResponse(), nil
	default:
		get := (*clientv3.GetResponse)(resp.GetResponseRange())
		get.Header = header
		return get.OpResponse(), nil
	}
}

func (g guardedKV) Put(ctx context.Context, key, val string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	resp, err := g.Do(ctx, clientv3.OpPut(key, val, opts...))
	return resp.Put(), err
}

func (g guardedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	resp, err := g.Do(ctx, clientv3.OpGet(key, opts...))
	return resp.Get(), err
}

func (g guardedKV) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	resp, err := g.Do(ctx, clientv3.OpDelete(key, opts...))
	return resp.Del(), err
}

func (g guardedKV) Txn(ctx context.Context) clientv3.Txn { return g.guard.Txn(ctx, g.kv) }

func (g guardedKV) Compact(context.Context, int64, ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	return nil, g.guard.unguardable("compact")
}

func (g Guard) unguardable(what string) error {
	return g.failed(fmt.Errorf("%w: %s cannot be guarded", eldest.ErrInvalid, what))
}
