package election

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/absent"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// Evict removes another candidate from an election's queue, waiter or leader, in the
// life that its token names and in no other: one that left and came back is left
// alone. One request on a healthy cluster; it blocks until etcd confirms, whichever
// member does, or ctx ends (its cause; the request may still arrive). A candidate that
// is gone already is a success. Errors: eldest.ErrInvalid, before anything is sent;
// what etcd refused.
//
// The evicted learns of it in milliseconds and its tenure ends with eldest.ErrDeposed,
// but its successor learns at the same moment: while the evicted one cannot hear etcd,
// two of them lead (G3 assumes that nobody else removes keys). Evict what is known to
// be dead, or fence what it does.
func Evict(ctx context.Context, kv clientv3.KV, election string, c eldest.Candidate) error {
	err := checkEvict(ctx, kv, election, c)
	if err == nil {
		policy := retryrpc.Policy{Client: kv, Timeout: DefaultTimeout, Backoff: retry.Default()}
		err = policy.Until(ctx, func(once context.Context) error { return txn.Leave(once, kv, c.Key, c.Token) })
	}
	if err != nil {
		return &eldest.OpError{Op: "evict", Election: election, Key: c.Key, Lease: c.Lease, Err: err}
	}
	return nil
}

func checkEvict(ctx context.Context, kv clientv3.KV, election string, c eldest.Candidate) error {
	switch {
	case ctx == nil:
		return fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	case absent.Client(kv):
		return fmt.Errorf("%w: the client is nil", eldest.ErrInvalid)
	case c.Token <= 0:
		return fmt.Errorf("%w: token %d is no create revision", eldest.ErrInvalid, c.Token)
	}
	if err := keys.Check(election); err != nil {
		return err
	}
	if _, err := keys.Parse(election, c.Key); err != nil {
		return fmt.Errorf("%w: %w", eldest.ErrInvalid, err)
	}
	return nil
}
