package retryrpc

import (
	"context"
	"errors"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
)

// Insist is Until for requests that must succeed sooner or later, such as the deletion of a key: a
// refusal of etcd is one failed attempt, and not the end. It returns nil, an error that wraps
// eldest.ErrClosed if the client was closed, or ctx's cause.
func (p Policy) Insist(ctx context.Context, f func(ctx context.Context) error) error {
	for attempt := 0; ; attempt++ {
		err := p.Until(ctx, f)
		if err == nil || ctx.Err() != nil || errors.Is(err, eldest.ErrClosed) {
			return err
		}
		pause := p.Backoff(attempt)
		if p.Failed != nil {
			p.Failed(attempt+1, err, pause)
		}
		if err := retry.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}
