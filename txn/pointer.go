package txn

import (
	"cmp"
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/keys"
)

// ByPointer is ByCreateRevision with a registration whose cost does not depend on the length of the
// queue. Outside the election's range one key, keys.Newest, names the candidate that registered
// last and is bound to its lease; the transaction that registers replaces it:
//
//	If   create(own) = 0
//	Then If version(pointer) < 17 Then Range(queue, 16 keys) Else Get(pointer)
//	     Put(own, value, lease), Put(pointer, own, lease)
//	Else Get(own)
//
// The first candidates read the queue, and all of it if it is short: that proves a win (G1), or
// saves later reads. The others read from the pointer which key to watch. The pointer is a hint and
// proves nothing: it may be missing, or name a candidate that has left. Its mod revision is the
// create revision of the candidate that it names, because one transaction wrote both.
//
// Each candidate that replaces the pointer reads the name of a different one, so one departure
// wakes one of them (G5). The queue may contain candidates that do not move the pointer, those of
// etcd's package. Then the next candidate that registers watches the candidate before them and is
// woken together with the first of them when that one leaves; it reads its elders and continues to
// wait.
//
// If etcd does not permit access to the pointer, or so many operations in a transaction, it
// registers as ByCreateRevision does. The zero value is ready to use.
type ByPointer struct{ ByCreateRevision }

// Enter implements Ordering.
func (q ByPointer) Enter(ctx context.Context, kv clientv3.KV, e Entry) (Position, error) {
	own, pointer, bound := e.Key(), keys.Newest(e.Election), clientv3.WithLease(clientv3.LeaseID(e.Lease))
	begin, end := keys.Range(e.Election)
	resp, err := kv.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(own), "=", 0)).
		Then(
			clientv3.OpTxn(
				[]clientv3.Cmp{clientv3.Compare(clientv3.Version(pointer), "<", nearest+1)},
				[]clientv3.Op{clientv3.OpGet(begin, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(nearest))},
				[]clientv3.Op{clientv3.OpGet(pointer)}),
			clientv3.OpPut(own, string(e.Value), bound),
			clientv3.OpPut(pointer, own, bound)).
		Else(clientv3.OpGet(own)).
		Commit()
	switch {
	case rpcerr.Is(err, rpctypes.ErrPermissionDenied), rpcerr.Is(err, rpctypes.ErrTooManyOps):
		return q.ByCreateRevision.Enter(ctx, kv, e)
	case err != nil:
		return Position{}, Outcome(err)
	case !resp.Succeeded:
		return exists(e, resp)
	}
	before := resp.Responses[0].GetResponseTxn()
	read := before.Responses[0].GetResponseRange()
	p := Position{Token: eldest.Token(resp.Header.Revision), Revision: resp.Header.Revision}
	switch {
	case !before.Succeeded:
		p.hint(e, read.Kvs)
	case !read.More:
		p.Queue = read.Count + 1
		slices.SortFunc(read.Kvs, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(b.CreateRevision, a.CreateRevision) })
		p.older(e, read.Kvs, true)
	default:
		p.Queue = read.Count + 1 // the nearest ones are read next
	}
	return p, nil
}

// hint sets Ahead to the candidate that the pointer names. It is unknown whether that candidate
// still exists, and which other older ones do.
func (p *Position) hint(e Entry, pointer []*mvccpb.KeyValue) {
	p.Revision = 0
	if len(pointer) == 0 {
		return
	}
	key := string(pointer[0].Value)
	if lease, err := keys.Parse(e.Election, key); err == nil && lease != e.Lease {
		p.Ahead = []eldest.Candidate{{Key: key, Lease: lease, Token: eldest.Token(pointer[0].ModRevision)}}
	}
}
