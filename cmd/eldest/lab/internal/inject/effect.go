package inject

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keys"
)

// ErrNoEffect is returned for a fault that was not seen to take effect.
var ErrNoEffect = errors.New("the fault took no effect")

// attempt bounds one question: the member that is asked may not answer.
const attempt = time.Second

// Until asks every few milliseconds until the answer is yes, and then returns its error. When ctx
// ends before that, the error is ErrNoEffect and says what was awaited. Each question has a second.
func Until(ctx context.Context, what string, ask func(context.Context) (yes bool, err error)) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, attempt)
		yes, err := ask(bounded)
		cancel()
		if yes {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w: %s: %w", ErrNoEffect, what, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// Answers blocks until a question that takes a majority of the members is answered through
// a client, or, if want is false, until it is not answered within the given time, which is less than
// a second.
func Answers(ctx context.Context, client *clientv3.Client, want bool, within time.Duration) error {
	what := "that etcd answers"
	if !want {
		what = "that etcd does not answer"
	}
	return Until(ctx, what, func(ctx context.Context) (bool, error) {
		end, _ := ctx.Deadline()
		short := time.Until(end) < within // what is broken off is not unanswered
		once, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, err := client.Get(once, "majority?", clientv3.WithCountOnly())
		return (err == nil) == want && (err == nil || !short && ctx.Err() == nil), nil
	})
}

// Delete deletes the key that was created at a revision, and blocks until it is gone.
func (f *Field) Delete(ctx context.Context, key string, created int64) error {
	err := Until(ctx, "that "+key+" is deleted", func(ctx context.Context) (bool, error) {
		_, err := f.All.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", created)).
			Then(clientv3.OpDelete(key)).Commit()
		return err == nil, err
	})
	if err != nil {
		return err
	}
	return f.Gone(ctx, key, created)
}

// Gone blocks until etcd says whether the key that was created at a revision is there. That
// it is, is ErrNoEffect.
func (f *Field) Gone(ctx context.Context, key string, created int64) error {
	return Until(ctx, "that "+key+" is gone", func(ctx context.Context) (bool, error) {
		resp, err := f.All.Get(ctx, key)
		if err == nil && len(resp.Kvs) > 0 && resp.Kvs[0].CreateRevision == created {
			return true, fmt.Errorf("%w: %s is still there", ErrNoEffect, key)
		}
		return err == nil, err
	})
}

// Leftovers returns the keys of elections, and all leases of the cluster. It blocks until there
// are none, but no longer than the limit.
func (f *Field) Leftovers(ctx context.Context, limit time.Duration, elections ...string) (left, leases []string, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	listed := false
	err = Until(limited, "that nothing is left", func(ctx context.Context) (bool, error) {
		granted, err := f.Client().Leases(ctx)
		if err != nil {
			return false, err
		}
		left, leases = nil, nil
		for _, l := range granted.Leases {
			leases = append(leases, fmt.Sprintf("%x", int64(l.ID)))
		}
		for _, name := range elections {
			begin, end := keys.Range(name)
			resp, err := f.Client().Get(ctx, begin, clientv3.WithRange(end), clientv3.WithKeysOnly())
			if err != nil {
				return false, err
			}
			for _, kv := range resp.Kvs {
				left = append(left, string(kv.Key))
			}
		}
		listed = true
		return len(left)+len(leases) == 0, nil
	})
	if listed && ctx.Err() == nil {
		err = nil
	}
	return left, leases, err
}
