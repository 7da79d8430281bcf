package election

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/absent"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// Evict removes another candidate, waiter or leader, from an election's queue, only if its key has
// the create revision that its token names: a candidate that left and came back has a new token and
// stays. It sends one request on a healthy cluster. It blocks until any member of etcd confirms, or
// ctx ends (its cause; the request may still arrive). If the candidate has left already, Evict
// succeeds. Errors: eldest.ErrInvalid, before anything is sent; errors of etcd, which wrap
// eldest.ErrOutcomeUnknown if the candidate may have been removed.
//
// The evicted candidate is notified in milliseconds and its tenure ends with eldest.ErrDeposed, but
// its successor is notified at the same moment: while the evicted leader is partitioned from etcd,
// two candidates lead (G3 assumes that no other client removes keys). Evict candidates whose
// process is known to be dead, or fence their effects.
func Evict(ctx context.Context, kv clientv3.KV, election string, c eldest.Candidate) error {
	err := checkEvict(ctx, kv, election, c)
	if err == nil {
		policy := retryrpc.Policy{Client: kv, Timeout: DefaultTimeout, Backoff: retry.Default()}
		unknown := false // of any attempt: the refusal of a later one does not undo it
		err = policy.Until(ctx, func(once context.Context) error {
			err := txn.Leave(once, kv, c.Key, c.Token)
			unknown = unknown || errors.Is(err, eldest.ErrOutcomeUnknown)
			return err
		})
		if err != nil && unknown && !errors.Is(err, eldest.ErrOutcomeUnknown) {
			err = fmt.Errorf("%w: %w", eldest.ErrOutcomeUnknown, err)
		}
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
	case absent.KV(kv):
		return fmt.Errorf("%w: the client is nil", eldest.ErrInvalid)
	case c.Token <= 0:
		return fmt.Errorf("%w: token %d is not a create revision", eldest.ErrInvalid, c.Token)
	}
	if err := keys.Check(election); err != nil {
		return err
	}
	if _, err := keys.Parse(election, c.Key); err != nil {
		return fmt.Errorf("%w: %w", eldest.ErrInvalid, err)
	}
	return nil
}
