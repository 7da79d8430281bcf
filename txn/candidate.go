package txn

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
)

// Proclaim replaces the value of a candidate's key, in one request, if the key is
// still in the life that token names; its place in the queue stays. Otherwise the
// old value stays and the error wraps eldest.ErrDeposed. It returns the key's new
// mod revision.
func Proclaim(ctx context.Context, kv clientv3.KV, e Entry, token eldest.Token) (modRevision int64, err error) {
	key := e.Key()
	resp, err := kv.Txn(ctx).
		If(inLife(key, token)).
		// With the lease: a put without one would unbind the key, and it would
		// outlive its candidate.
		Then(clientv3.OpPut(key, string(e.Value), clientv3.WithLease(clientv3.LeaseID(e.Lease)))).
		Commit()
	switch {
	case err != nil:
		return 0, outcome(err)
	case !resp.Succeeded:
		return 0, fmt.Errorf("%w (seen at revision %d)", eldest.ErrDeposed, resp.Header.Revision)
	}
	return resp.Header.Revision, nil
}

// Leave deletes a candidate's key, in one request, if it is still in the life
// that token names. A key that is gone or in another life is a success: whoever
// sends Leave again after a lost reply has left.
func Leave(ctx context.Context, kv clientv3.KV, key string, token eldest.Token) error {
	_, err := kv.Txn(ctx).If(inLife(key, token)).Then(clientv3.OpDelete(key)).Commit()
	return outcome(err)
}

// Sweep deletes a candidate's key, whatever its token, if it is bound to the
// given lease: for the holder of the lease who does not know whether an attempt
// to enter went through. A key that is not there is a success.
func Sweep(ctx context.Context, kv clientv3.KV, e Entry) error {
	key := e.Key()
	_, err := kv.Txn(ctx).
		If(clientv3.Compare(clientv3.LeaseValue(key), "=", e.Lease)).
		Then(clientv3.OpDelete(key)).
		Commit()
	return outcome(err)
}

// EnterAlone enters the queue only if the election's range is empty, in one
// request; it never queues. A key of one's own that is there already, from an
// attempt whose reply was lost, is reported as adopted. Otherwise the error wraps
// eldest.ErrNotElected and nothing was written.
func EnterAlone(ctx context.Context, kv clientv3.KV, e Entry) (Place, error) {
	key := e.Key()
	begin, end := keys.Range(e.Election)
	resp, err := kv.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(begin), "=", 0).WithRange(end)).
		Then(clientv3.OpPut(key, string(e.Value), clientv3.WithLease(clientv3.LeaseID(e.Lease)))).
		Else(clientv3.OpGet(key)).
		Commit()
	if err != nil {
		return Place{}, outcome(err)
	}
	revision := resp.Header.Revision
	if !resp.Succeeded {
		if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
			return adopted(e, kvs[0], revision)
		}
		return Place{}, fmt.Errorf("%w (seen at revision %d)", eldest.ErrNotElected, revision)
	}
	return Place{Token: eldest.Token(revision), Revision: revision, Complete: true, Queue: 1}, nil
}

// inLife compares a key with one life of it.
func inLife(key string, token eldest.Token) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", int64(token))
}
