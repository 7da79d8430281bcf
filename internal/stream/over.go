package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// lanes opens links over a Watcher. etcd's client puts watches whose contexts have the same
// metadata on one stream, which may have other users. If a stream stops responding, or its token
// has expired, other metadata make the client open another stream, on its next connection. That may
// be one to the same member.
type lanes struct {
	watcher         clientv3.Watcher
	silent, expired int
}

// laneKey is the key of that metadata. The server ignores it.
const laneKey = "eldest-stream"

// most is the maximum number of streams that are kept because they stopped responding: a client
// that could never open a stream keeps it for as long as the client lives. A stream whose token has
// expired was open, so the client drops it when its last watch ends.
const most = 4

func (l *lanes) open(ctx context.Context, last error) (Link, error) {
	switch {
	case rpcerr.Is(last, rpctypes.ErrInvalidAuthToken) || rpcerr.Is(last, rpctypes.ErrAuthOldRevision):
		l.expired++
	case errors.Is(last, eldest.ErrUnavailable) || errors.Is(last, ErrBack):
		l.silent++
	}
	switch n := l.silent % most; {
	case l.expired > 0:
		ctx = metadata.AppendToOutgoingContext(ctx, laneKey, fmt.Sprintf("%d.%d", n, l.expired))
	case n > 0:
		ctx = metadata.AppendToOutgoingContext(ctx, laneKey, fmt.Sprint(n))
	}
	return &over{ctx: ctx, watcher: l.watcher, news: make(chan news), cancels: make(map[int64]context.CancelFunc)}, nil
}

// over is a link over a Watcher: each of its watches is one of the Watcher, with a goroutine.
type over struct {
	ctx     context.Context //nolint:containedctx // the link's life
	watcher clientv3.Watcher
	news    chan news

	pumps sync.WaitGroup

	mu      sync.Mutex
	last    int64
	cancels map[int64]context.CancelFunc
}

// news is what Recv returns.
type news struct {
	resp *pb.WatchResponse
	err  error
}

// Send opens or cancels a watch. It blocks until etcd has answered.
func (o *over) Send(r *pb.WatchRequest) error {
	if c := r.GetCancelRequest(); c != nil {
		o.end(c.WatchId)
		return nil
	}
	c := r.GetCreateRequest()
	opts := []clientv3.OpOption{clientv3.WithCreatedNotify(), clientv3.WithRev(c.StartRevision)}
	if len(c.RangeEnd) > 0 {
		opts = append(opts, clientv3.WithRange(string(c.RangeEnd)))
	}
	if len(c.Filters) > 0 {
		opts = append(opts, clientv3.WithFilterPut())
	}
	ctx, cancel := context.WithCancel(o.ctx)
	events := o.watcher.Watch(ctx, string(c.Key), opts...)
	o.mu.Lock()
	id := o.last
	o.last++
	o.cancels[id] = cancel
	o.mu.Unlock()
	// Answers are expected in the order of the requests, so Send waits for the first one.
	if o.deliver(ctx, id, events, true) {
		o.pumps.Go(func() {
			defer o.end(id)
			for o.deliver(ctx, id, events, false) {
			}
		})
	} else {
		o.end(id)
	}
	return o.ctx.Err()
}

// deliver makes Recv return the next message of the watch, and reports whether the watch continues.
func (o *over) deliver(ctx context.Context, id int64, events clientv3.WatchChan, first bool) (goesOn bool) {
	n := news{resp: &pb.WatchResponse{WatchId: id, Created: first}}
	select {
	case resp, ok := <-events:
		switch {
		case ctx.Err() != nil:
			return false
		case !ok:
			n.err = errEnded
		default:
			n.err, n.resp.Header = rpcerr.Restore(resp.Err()), headerOf(&resp)
		}
		n.resp.Canceled, n.resp.CompactRevision = n.err != nil, resp.CompactRevision
		n.resp.Events = messagesOf(resp.Events)
	case <-ctx.Done(): // while the client searches for another member, it does not close the channel
		return false
	}
	select {
	case o.news <- n:
		return n.err == nil
	case <-ctx.Done():
		return false
	}
}

var errEnded = errors.New("the watch ended, and etcd gave no reason")

func (o *over) end(id int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cancel := o.cancels[id]; cancel != nil {
		cancel()
		delete(o.cancels, id)
	}
}

// Recv returns the next message.
func (o *over) Recv() (*pb.WatchResponse, error) {
	select {
	case n := <-o.news:
		return n.resp, n.err
	case <-o.ctx.Done():
		return nil, context.Cause(o.ctx)
	}
}

// Wait blocks until no goroutine is left, after the end of the link and the last Send.
func (o *over) Wait() { o.pumps.Wait() }
