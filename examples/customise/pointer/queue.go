package pointer

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// Queue is txn.ByCreateRevision with another way in. The zero value is ready.
type Queue struct{ txn.ByCreateRevision }

// Key returns the pointer's key. No election has it in its range: it has no '/'.
func Key(election string) string { return election + ".newest" }

// Enter implements txn.Queue, without a range.
func (q Queue) Enter(ctx context.Context, kv clientv3.KV, e txn.Entry) (txn.Place, error) {
	own, pointer, bound := e.Key(), Key(e.Election), clientv3.WithLease(clientv3.LeaseID(e.Lease))
	resp, err := kv.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(own), "=", 0)).
		Then(
			clientv3.OpGet(pointer), // before it is swapped: the operations run in this order
			clientv3.OpPut(own, string(e.Value), bound),
			clientv3.OpPut(pointer, own, bound)).
		Else(clientv3.OpGet(own)).
		Commit()
	switch {
	case err != nil:
		return txn.Place{}, txn.Outcome(err)
	case !resp.Succeeded:
		// It is there, from an attempt whose reply was lost. The default queue adopts it.
		return q.ByCreateRevision.Enter(ctx, kv, e)
	}
	p := txn.Place{Token: eldest.Token(resp.Header.Revision), Revision: resp.Header.Revision}
	if old := resp.Responses[0].GetResponseRange().Kvs; len(old) > 0 {
		// Complete stays false: nothing is known of those who are older than this one.
		// Without a hint, or with one that cannot be one, Ahead is asked at once.
		if lease, err := keys.Parse(e.Election, string(old[0].Value)); err == nil && lease != e.Lease {
			p.Revision = 0 // whether that one is still there nobody knows
			p.Ahead = []eldest.Candidate{{Key: string(old[0].Value), Lease: lease, Token: eldest.Token(old[0].ModRevision)}}
		}
	}
	return p, nil
}
