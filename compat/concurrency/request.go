package concurrency

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/ask"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/watch"
)

// farewell is how long a campaign that has ended waits for its key to be gone.
const farewell = time.Second

// requestTimeout bounds a single attempt: a member that swallows requests costs this
// much, then another one is asked.
const requestTimeout = 2 * time.Second

func policy(client *clientv3.Client) ask.Policy {
	return ask.Policy{Client: client, Timeout: requestTimeout, Backoff: retry.Default()}
}

// life returns the context that ends when the client is closed; never, if the program has
// put the client together from parts.
func life(client *clientv3.Client) context.Context {
	if ctx := client.Ctx(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// newSource returns where the session's watches come from.
func (s *Session) newSource() *watch.Source {
	recheck := 5 * time.Second
	if s.lease != nil {
		recheck = min(recheck, s.lease.TTL()/2)
	}
	return &watch.Source{
		KV: s.client, Watcher: s.client,
		Backoff: retry.Default(), Timeout: requestTimeout, Recheck: recheck,
	}
}

// plain returns the error that programs know from etcd's package, which compare without
// errors.Is: that of their context, or etcd's own, bare.
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

// recorder is a KV that keeps the header of the last answer, for Header. It is for one
// call at a time.
type recorder struct {
	clientv3.KV
	header *pb.ResponseHeader
}

// Txn implements clientv3.KV.
func (r *recorder) Txn(ctx context.Context) clientv3.Txn {
	return &recordedTxn{txn: r.KV.Txn(ctx), recorder: r}
}

// Do implements clientv3.KV; of its operations package txn sends reads.
func (r *recorder) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	resp, err := r.KV.Do(ctx, op)
	if err == nil && resp.Get() != nil {
		r.header = resp.Get().Header
	}
	return resp, err
}

// recordedTxn is a transaction whose header is kept.
type recordedTxn struct {
	txn      clientv3.Txn
	recorder *recorder
}

func (t *recordedTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	t.txn = t.txn.If(cs...)
	return t
}

func (t *recordedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.txn = t.txn.Then(ops...)
	return t
}

func (t *recordedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.txn = t.txn.Else(ops...)
	return t
}

func (t *recordedTxn) Commit() (*clientv3.TxnResponse, error) {
	resp, err := t.txn.Commit()
	if err == nil {
		t.recorder.header = resp.Header
	}
	return resp, err
}
