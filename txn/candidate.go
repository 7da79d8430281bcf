package txn

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
)

// Proclaim replaces the value of a candidate's key, in one request, if the key's create revision is
// still token; its position in the queue stays the same. Otherwise the old value stays and the
// error wraps eldest.ErrDeposed. It returns the key's new mod revision.
func Proclaim(ctx context.Context, kv clientv3.KV, e Entry, token eldest.Token) (modRevision int64, err error) {
	key := e.Key()
	resp, err := kv.Txn(ctx).
		If(inLife(key, token)).
		// With the lease: a put without it would detach the key from the lease, and the key would
		// outlive its candidate.
		Then(clientv3.OpPut(key, string(e.Value), clientv3.WithLease(clientv3.LeaseID(e.Lease)))).
		Commit()
	switch {
	case err != nil:
		return 0, Outcome(err)
	case !resp.Succeeded:
		return 0, fmt.Errorf("%w (seen at revision %d)", eldest.ErrDeposed, resp.Header.Revision)
	}
	return resp.Header.Revision, nil
}

// Leave deletes a candidate's key, in one request, if its create revision is still token. If the
// key does not exist or has another create revision, Leave succeeds, so it may be sent again after
// a lost reply.
func Leave(ctx context.Context, kv clientv3.KV, key string, token eldest.Token) error {
	_, err := kv.Txn(ctx).If(inLife(key, token)).Then(clientv3.OpDelete(key)).Commit()
	return Outcome(err)
}

// inLife compares the create revision of a key with a token.
func inLife(key string, token eldest.Token) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", int64(token))
}
