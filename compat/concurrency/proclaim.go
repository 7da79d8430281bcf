package concurrency

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// errSuperseded says that the key has been written to since it was seen.
var errSuperseded = errors.New("a later value is there")

// proclaim replaces the value in one request, if the key is in the life of the stay and,
// where seen is positive, was not written to after revision seen. Else the error wraps
// eldest.ErrDeposed, or is errSuperseded.
//
// The key is bound to the session's lease, as in etcd's package. That is the lease which
// the key names, unless the leadership was resumed by a session with another one: then it
// is this session that keeps the key alive from here on.
func (st *stay) proclaim(ctx context.Context, kv clientv3.KV, value string, seen int64) error {
	key := st.slot.key
	same := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", int64(st.token))}
	if seen > 0 {
		same = append(same, clientv3.Compare(clientv3.ModRevision(key), "<", seen+1))
	}
	resp, err := kv.Txn(ctx).If(same...).
		Then(clientv3.OpPut(key, value, clientv3.WithLease(st.slot.session.id))).
		Else(clientv3.OpGet(key, clientv3.WithKeysOnly())).
		Commit()
	switch {
	case rpcerr.Definite(err):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", eldest.ErrOutcomeUnknown, err)
	case resp.Succeeded:
		return nil
	}
	for _, found := range resp.Responses[0].GetResponseRange().Kvs {
		if found.CreateRevision == int64(st.token) {
			return errSuperseded
		}
	}
	return fmt.Errorf("%w (seen at revision %d)", eldest.ErrDeposed, resp.Header.Revision)
}
