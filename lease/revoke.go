package lease

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/past"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// revoke revokes the lease, which deletes its keys. It tries until the server answers, wanted ends,
// or one TTL has passed: then an etcd that works has expired the lease by itself. (One that has no
// leader expires none, and the next leader starts the TTL again.)
func (s *Session) revoke(wanted context.Context, r core.Rhythm) error {
	ctx, cancel := context.WithTimeout(wanted, r.TTL)
	defer cancel()
	refused := true // every attempt was, or none was made
	policy := s.cfg.policy("revoke", max(r.Timeout, time.Second), s.hooks)
	err := policy.Until(ctx, func(ctx context.Context) error {
		_, err := s.cfg.Lease.Revoke(ctx, s.id)
		if rpcerr.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}
		refused = refused && rpcerr.Definite(err)
		return err
	})
	if err != nil && refused {
		past.Refused(int64(s.id))
	}
	switch {
	case err == nil:
		past.Forget(int64(s.id))
		return nil
	case wanted.Err() != nil:
		return nil // cancelled by Abandon: the lease is to remain
	case ctx.Err() != nil:
		// The context is not the caller's: its error would look like the end of the caller's
		// context.
		return fmt.Errorf("revoke: %w: no answer within the TTL of %v; the lease expires by itself (%s)", eldest.ErrUnavailable, r.TTL, err.Error())
	default:
		return fmt.Errorf("revoke: %w; the lease expires by itself within %v", err, r.TTL)
	}
}
