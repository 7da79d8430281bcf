package watch

import (
	"context"
	"fmt"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/internal/stream"
)

// Source is the client through which keys are watched, and the parameters of its use.
type Source struct {
	// KV and Watcher are the RPC surface.
	KV      clientv3.KV
	Watcher clientv3.Watcher
	// Backoff gives the pauses between attempts to open a watch.
	Backoff retry.Backoff
	// Timeout bounds each single request and the opening of a watch.
	Timeout time.Duration
	// WatchCheck is the time between two liveness checks of a quiet watch.
	WatchCheck time.Duration
	// Interrupted, if set, is called with the key and the reason for each watch that has ended or
	// cannot be opened, and is opened again. It must not block.
	Interrupted func(key string, reason error)
	// Failed, if set, is called for each read that failed and is repeated; see retryrpc.Policy.
	Failed func(attempt int, err error, pause time.Duration)
}

// Stream returns the stream that all watches of the client share. The caller must release it.
func (s *Source) Stream() *stream.Shared { return stream.Of(s.KV, s.Watcher, s.WatchCheck, s.Timeout) }

// patience is how long a read may stay unanswered, by one member after another, before etcd counts
// as unavailable.
func (s *Source) patience() time.Duration { return 4 * min(s.Timeout, math.MaxInt64/4) }

// ask sends a read until it is answered, for at most patience. Each attempt has its own time-out,
// so a member that does not respond costs one attempt. The error is a refusal that is final, as
// etcd returned it, ctx's cause, or eldest.ErrUnavailable.
func (s *Source) ask(ctx context.Context, patience time.Duration, read clientv3.Op) (resp clientv3.OpResponse, err error) {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(patience, func() { cancel(context.DeadlineExceeded) })
	defer silence.Stop()
	policy := retryrpc.Policy{Client: s.KV, Timeout: s.Timeout, Backoff: s.Backoff, Failed: s.Failed}
	err = policy.Until(limited, func(once context.Context) (err error) {
		resp, err = s.KV.Do(once, read)
		if rpcerr.Refused(err) {
			silence.Reset(patience) // etcd has answered
		}
		return err
	})
	switch {
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return resp, context.Cause(ctx)
	case limited.Err() != nil:
		return resp, fmt.Errorf("%w: for %v: %w", eldest.ErrUnavailable, patience, err)
	}
	return resp, err
}
