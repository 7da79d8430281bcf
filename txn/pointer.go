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

// ByPointer is ByCreateRevision with a registration that costs the same however long the queue
// is. Beside the election's range one key, keys.Newest, names the candidate that registered last
// and is bound to its lease; the transaction that registers replaces it:
//
//	If   create(own) = 0
//	Then If version(pointer) < 17 Then Range(queue, 16 keys) Else Get(pointer)
//	     Put(own, value, lease), Put(pointer, own, lease)
//	Else Get(own)
//
// The first candidates read the queue, and know all of it if it is short: that is the proof of
// a win (G1), or saves questions later. The others learn from the pointer whom to watch. The
// pointer is a hint and proves nothing: it may be missing, or name a candidate that has left. Its
// mod revision is the create revision of the candidate that it names, because one transaction
// wrote both.
//
// Each candidate that replaces the pointer learns of another one, so one departure wakes one of
// them (G5). Candidates that do not move the pointer, those of etcd's package, may be in the
// queue: whoever registers next watches the one before them, is woken beside the first of
// them when that one leaves, asks etcd who is older, and waits on.
//
// Where etcd does not permit to use the pointer, or so many operations in a transaction, it
// registers as ByCreateRevision does. The zero value is ready.
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
		return Position{}, outcome(err)
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
		p.Queue = read.Count + 1 // who is nearest is asked next
	}
	return p, nil
}

// hint takes the candidate that the pointer names for the nearest older one. Nothing is known of
// the others, nor whether that one is still there.
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
