package watch

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/ask"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// Source is where watches come from. It must not be copied after first use; all
// watches of one Source share etcd's watch stream as long as that works.
type Source struct {
	// KV and Watcher are the RPC surface.
	KV      clientv3.KV
	Watcher clientv3.Watcher
	// Backoff gives the pauses between attempts to open a watch.
	Backoff retry.Backoff
	// Timeout bounds each single request and the opening of a watch.
	Timeout time.Duration
	// Recheck is the time between two rechecks of a quiet watch.
	Recheck time.Duration
	// Interrupted, if set, is told of each watch that ended or was not to be had, and
	// is tried again: its key, and why. It must not block.
	Interrupted func(key string, reason error)
	// Failed, if set, is told of each read that failed and is repeated; see ask.Policy.
	Failed func(attempt int, err error, pause time.Duration)

	// silent counts the streams that fell silent, and expired those whose token did;
	// see distrust.
	silent, expired atomic.Int64
}

// streamKey is the metadata by which the client tells streams apart. The server
// ignores it.
const streamKey = "eldest-stream"

// streams is how many streams there are at most: the client keeps one for as long
// as it lives if it could never open it.
const streams = 4

// leaderRequired is the metadata of nearly every watch: the member must have a leader.
// All of them share it, so nobody may change it.
var leaderRequired = metadata.Pairs(rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)

// lane says on which stream a watch is put: how many had failed by then.
type lane struct{ silent, expired int64 }

func (s *Source) lane() lane { return lane{silent: s.silent.Load(), expired: s.expired.Load()} }

// on returns ctx made ready for a watch on the lane's stream: the member must have a
// leader. Silent streams are used again in turn. Those that were refused never are: they
// were open, so the client drops each when its last watch ends.
func (l lane) on(ctx context.Context) context.Context {
	if _, callers := metadata.FromOutgoingContext(ctx); callers {
		ctx = clientv3.WithRequireLeader(ctx) // which keeps what the caller put there
	} else {
		ctx = metadata.NewOutgoingContext(ctx, leaderRequired)
	}
	switch n := l.silent % streams; {
	case l.expired > 0:
		return metadata.AppendToOutgoingContext(ctx, streamKey, fmt.Sprintf("%d.%d", n, l.expired))
	case n > 0:
		return metadata.AppendToOutgoingContext(ctx, streamKey, fmt.Sprint(n))
	}
	return ctx
}

// distrust makes later watches use another stream than one of the given lane, which
// fell silent. Many watches on one stream move together.
func (s *Source) distrust(l lane) { s.silent.CompareAndSwap(l.silent, l.silent+1) }

// ended returns the error of a watch on the given lane that the server, or something on the
// way, has ended or refused. A stream keeps the token with which it was opened, and once that
// has expired nothing can be added to it; a new one gets a new token.
func (s *Source) ended(l lane, err error) error {
	err = rpcerr.Restore(err)
	if rpcerr.Is(err, rpctypes.ErrInvalidAuthToken) || rpcerr.Is(err, rpctypes.ErrAuthOldRevision) {
		s.expired.CompareAndSwap(l.expired, l.expired+1)
	}
	return &endedError{err}
}

// endedError is why a watch was ended or refused, by one member or something on the way to
// it. All of etcd may answer otherwise.
type endedError struct{ error }

func (e *endedError) Unwrap() error { return e.error }

// opened is a watch that the server has confirmed.
type opened struct {
	events clientv3.WatchChan
	lane   lane
	close  context.CancelFunc
}

// open starts a watch and blocks until the server has confirmed it, Timeout has
// passed, or ctx ends. The caller must call close.
func (s *Source) open(ctx context.Context, key string, opts ...clientv3.OpOption) (*opened, error) {
	o := &opened{lane: s.lane()}
	var wctx context.Context
	wctx, o.close = context.WithCancel(o.lane.on(ctx))
	// Watch blocks until the server answers and has no time-out of its own; the
	// context must live on afterwards. So the time-out is a timer that is stopped.
	timer := time.AfterFunc(s.Timeout, o.close)
	o.events = s.Watcher.Watch(wctx, key, append(opts, clientv3.WithCreatedNotify())...)
	var resp clientv3.WatchResponse
	var ok bool
	select {
	case resp, ok = <-o.events:
	case <-wctx.Done():
		// Not left to the channel's end: while the client looks for a member to
		// go on with, it does not close the channels of what was cancelled.
	}
	timely := timer.Stop()
	switch {
	case ctx.Err() != nil:
		o.close()
		return nil, context.Cause(ctx)
	case !timely:
		o.close()
		return nil, &noWatchError{lane: o.lane, within: s.Timeout}
	case !ok:
		o.close()
		// A closed client ends watches without a word; a request says why.
		if _, err := s.ask(ctx, s.Timeout, clientv3.OpGet(key, clientv3.WithCountOnly())); err != nil {
			return nil, err
		}
		return nil, errEnded
	case resp.Err() != nil:
		o.close()
		return nil, s.ended(o.lane, resp.Err())
	}
	return o, nil
}

// noWatchError is returned when a watch was not confirmed in time.
type noWatchError struct {
	lane   lane
	within time.Duration
}

func (e *noWatchError) Error() string {
	return fmt.Sprintf("%v: no watch within %v", eldest.ErrSilent, e.within)
}

func (e *noWatchError) Unwrap() error { return eldest.ErrSilent }

// patience is how long a question may stay unanswered, by one member after
// another, before etcd counts as silent.
func (s *Source) patience() time.Duration { return 4 * s.Timeout }

// ask sends a read until it is answered, for at most patience, each attempt with
// a time-out of its own: a member that swallows requests costs one attempt. It
// returns a refusal that is final as it is, ctx's cause, or eldest.ErrSilent.
func (s *Source) ask(ctx context.Context, patience time.Duration, read clientv3.Op) (resp clientv3.OpResponse, err error) {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(patience, func() { cancel(context.DeadlineExceeded) })
	defer silence.Stop()
	policy := ask.Policy{Client: s.KV, Timeout: s.Timeout, Backoff: s.Backoff, Failed: s.Failed}
	err = policy.Until(limited, func(once context.Context) (err error) {
		resp, err = s.KV.Do(once, read)
		if rpcerr.Refused(err) {
			silence.Reset(patience) // it was answered
		}
		return err
	})
	switch {
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return resp, context.Cause(ctx)
	case limited.Err() != nil:
		return resp, fmt.Errorf("%w: for %v: %w", eldest.ErrSilent, patience, err)
	}
	return resp, err
}
