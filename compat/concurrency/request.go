package concurrency

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// requestTimeout bounds a single attempt: if a member does not respond for this long, the request
// is sent to another one.
const requestTimeout = 2 * time.Second

func policy(client *clientv3.Client) retryrpc.Policy {
	return retryrpc.Policy{Client: client, Timeout: requestTimeout, Backoff: retry.Default()}
}

// life returns the context that ends when the client is closed. It never ends if the program has
// assembled the client from parts.
func life(client *clientv3.Client) context.Context {
	if ctx := client.Ctx(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// plain returns the error that programs expect from etcd's package, because they compare it without
// errors.Is: that of their context, or etcd's own, not wrapped.
func plain(ctx context.Context, client *clientv3.Client, err error) error {
	var etcd rpctypes.EtcdError
	var halted clientv3.ErrKeepAliveHalted
	switch {
	case err == nil:
		return nil
	case errors.As(err, &halted):
		return halted
	case ctx != nil && ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &etcd):
		return etcd
	case life(client).Err() != nil:
		return life(client).Err()
	}
	return fmt.Errorf("concurrency: %w", err)
}

// errSuperseded means that the key has been written to since it was read.
var errSuperseded = errors.New("the key has a later value")

// put replaces the value of a key in one request, if the key has the token and, if seen is
// positive, was not written to after revision seen. Otherwise the error wraps eldest.ErrDeposed, or
// is errSuperseded. The key is bound to the lease, as in etcd's package; the key's name contains
// another lease if the leadership was resumed by a session with a lease of its own.
func put(ctx context.Context, kv clientv3.KV, key string, token eldest.Token, lease clientv3.LeaseID, value string, seen int64) (*pb.ResponseHeader, error) {
	same := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", int64(token))}
	if seen > 0 {
		same = append(same, clientv3.Compare(clientv3.ModRevision(key), "<", seen+1))
	}
	resp, err := kv.Txn(ctx).If(same...).
		Then(clientv3.OpPut(key, value, clientv3.WithLease(lease))).
		Else(clientv3.OpGet(key, clientv3.WithKeysOnly())).
		Commit()
	switch {
	case rpcerr.Definite(err):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", eldest.ErrOutcomeUnknown, err)
	case resp.Succeeded:
		return resp.Header, nil
	}
	for _, found := range resp.Responses[0].GetResponseRange().Kvs {
		if found.CreateRevision == int64(token) {
			return nil, errSuperseded
		}
	}
	return resp.Header, fmt.Errorf("%w (seen at revision %d)", eldest.ErrDeposed, resp.Header.Revision)
}

// recorder is a KV that keeps the header of the last response, for Header.
type recorder struct {
	clientv3.KV
	mu     sync.Mutex
	header *pb.ResponseHeader
}

func (r *recorder) last() *pb.ResponseHeader {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.header
}

// keep keeps the newest header: a response for which no call waits any more may be older.
func (r *recorder) keep(h *pb.ResponseHeader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.GetRevision() >= r.header.GetRevision() {
		r.header = h
	}
}

// Txn implements clientv3.KV.
func (r *recorder) Txn(ctx context.Context) clientv3.Txn {
	return &recordedTxn{Txn: r.KV.Txn(ctx), recorder: r}
}

// Do implements clientv3.KV; package txn uses it for reads.
func (r *recorder) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	resp, err := r.KV.Do(ctx, op)
	if err == nil && resp.Get() != nil {
		r.keep(resp.Get().Header)
	}
	return resp, err
}

// recordedTxn is a transaction whose header is kept.
type recordedTxn struct {
	clientv3.Txn
	recorder *recorder
}

func (t *recordedTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cs...)
	return t
}

func (t *recordedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *recordedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *recordedTxn) Commit() (*clientv3.TxnResponse, error) {
	resp, err := t.Txn.Commit()
	if err == nil {
		t.recorder.keep(resp.Header)
	}
	return resp, err
}
