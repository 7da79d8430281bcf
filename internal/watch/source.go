package watch

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

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

	// stream counts the streams that fell silent; see distrust.
	stream atomic.Int64
}

// streamKey is the metadata by which the client tells streams apart. The server
// ignores it.
const streamKey = "eldest-stream"

// streams is how many streams there are at most: the client keeps one for as long
// as it lives if it could never open it.
const streams = 4

// onStream returns ctx made ready for a watch on the n-th stream: the member must
// have a leader.
func onStream(ctx context.Context, n int64) context.Context {
	ctx = clientv3.WithRequireLeader(ctx)
	if n %= streams; n > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, streamKey, strconv.FormatInt(n, 10))
	}
	return ctx
}

// distrust makes later watches use another stream than one opened when the
// counter stood at seen. Many watches on a stream that fell silent move together.
func (s *Source) distrust(seen int64) { s.stream.CompareAndSwap(seen, seen+1) }

// opened is a watch that the server has confirmed.
type opened struct {
	events   clientv3.WatchChan
	revision int64 // of the store when the watch was put in place
	stream   int64
	close    context.CancelFunc
}

// open starts a watch and blocks until the server has confirmed it, Timeout has
// passed, or ctx ends. The caller must call close.
func (s *Source) open(ctx context.Context, key string, opts ...clientv3.OpOption) (*opened, error) {
	o := &opened{stream: s.stream.Load()}
	var wctx context.Context
	wctx, o.close = context.WithCancel(onStream(ctx, o.stream))
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
		// Is the stream at fault, or all of etcd away? Only in the first case does
		// another stream help; in the second each would be one more to come back.
		if _, err := s.ask(ctx, s.Timeout, clientv3.OpGet(key, clientv3.WithCountOnly())); err != nil {
			return nil, err
		}
		s.distrust(o.stream)
		return nil, fmt.Errorf("%w: no watch within %v", eldest.ErrSilent, s.Timeout)
	case !ok:
		o.close()
		// A closed client ends watches without a word; a request says why.
		if _, err := s.ask(ctx, s.Timeout, clientv3.OpGet(key, clientv3.WithCountOnly())); err != nil {
			return nil, err
		}
		return nil, errEnded
	case resp.Err() != nil:
		o.close()
		return nil, rpcerr.Restore(resp.Err())
	}
	o.revision = resp.Header.Revision
	return o, nil
}

// patience is how long a question may stay unanswered, by one member after
// another, before etcd counts as silent.
func (s *Source) patience() time.Duration { return 4 * s.Timeout }

// ask sends a read until it is answered, for at most patience, each attempt with
// a time-out of its own: a member that swallows requests costs one attempt. It
// returns a permanent refusal as it is, ctx's cause, or eldest.ErrSilent.
func (s *Source) ask(ctx context.Context, patience time.Duration, read clientv3.Op) (resp clientv3.OpResponse, err error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	policy := ask.Policy{Client: s.KV, Timeout: s.Timeout, Backoff: s.Backoff}
	err = policy.Until(limited, func(once context.Context) (err error) {
		resp, err = s.KV.Do(once, read)
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
