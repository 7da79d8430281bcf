package inject

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrNoEffect is returned for a fault that was not seen to take effect.
var ErrNoEffect = errors.New("the fault took no effect")

// Eventually asks every few milliseconds until the answer is yes. The end of ctx before
// that is ErrNoEffect.
func Eventually(ctx context.Context, what string, yes func() (bool, error)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := yes()
		if err != nil {
			return err
		}
		if ok {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %s: %w", ErrNoEffect, what, context.Cause(ctx))
		}
	}
}

// attempt bounds one request: the member that was asked may not answer.
const attempt = time.Second

// Persist asks until there is an answer, or ctx ends. ErrNoEffect is an answer.
func Persist(ctx context.Context, ask func(context.Context) error) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, attempt)
		err := ask(bounded)
		cancel()
		if err == nil || errors.Is(err, ErrNoEffect) {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrNoEffect, err)
		}
	}
}

// Delete deletes the key that was created at a revision, and blocks until it is gone.
func (f *Field) Delete(ctx context.Context, key string, created int64) error {
	err := Persist(ctx, func(ctx context.Context) error {
		_, err := f.All.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", created)).
			Then(clientv3.OpDelete(key)).Commit()
		return err
	})
	if err != nil {
		return err
	}
	return f.Gone(ctx, key, created)
}

// Gone blocks until etcd says whether the key that was created at a revision is there. That
// it is, is ErrNoEffect.
func (f *Field) Gone(ctx context.Context, key string, created int64) error {
	return Persist(ctx, func(ctx context.Context) error {
		resp, err := f.All.Get(ctx, key)
		if err == nil && len(resp.Kvs) > 0 && resp.Kvs[0].CreateRevision == created {
			return fmt.Errorf("%w: %s is still there", ErrNoEffect, key)
		}
		return err
	})
}
