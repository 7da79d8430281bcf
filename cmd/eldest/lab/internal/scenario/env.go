package scenario

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// Env is what a plan is carried out in: a cluster with its faults, the processes of the
// participants (Field.Spawner), and the history of what they report and of what is done.
type Env[F any] struct {
	*inject.Field
	History[F]
}

// Open starts the cluster and blocks until it serves, or ctx ends. On an error nothing is left.
// The caller must Close the environment, which ends all participants.
func Open[F any](ctx context.Context, cfg etcdtest.Config) (*Env[F], error) {
	field, err := inject.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Env[F]{Field: field}, nil
}

// Leftovers returns the keys of elections, and all leases of the cluster. It blocks until there
// are none, but no longer than the limit.
func (e *Env[F]) Leftovers(ctx context.Context, limit time.Duration, elections ...string) (left, leases []string, err error) {
	err = Until(ctx, limit, func(ctx context.Context) (bool, error) {
		left, leases = nil, nil
		granted, err := e.Client().Leases(ctx)
		if err != nil {
			return false, err
		}
		for _, l := range granted.Leases {
			leases = append(leases, fmt.Sprintf("%x", int64(l.ID)))
		}
		for _, name := range elections {
			begin, end := keys.Range(name)
			resp, err := e.Client().Get(ctx, begin, clientv3.WithRange(end), clientv3.WithKeysOnly())
			if err != nil {
				return false, err
			}
			for _, kv := range resp.Kvs {
				left = append(left, string(kv.Key))
			}
		}
		return len(left)+len(leases) == 0, nil
	})
	return left, leases, err
}

// Until calls ask again and again until it is done, or the limit is over: then the last error is
// returned. Each call has two seconds. The end of ctx is an error, its cause.
func Until(ctx context.Context, limit time.Duration, ask func(context.Context) (done bool, err error)) error {
	for due := time.Now().Add(limit); ; {
		bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
		done, err := ask(bounded)
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && done || time.Now().After(due) {
			return err
		}
		if err := Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// Sleep blocks for a time. The end of ctx ends it, with its cause.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
