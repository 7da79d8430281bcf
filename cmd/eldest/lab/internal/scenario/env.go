package scenario

import (
	"context"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/internal/etcdtest"
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

// Sleep blocks for a time. The end of ctx ends it, with its cause.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
