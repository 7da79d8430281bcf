package stream

import (
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// sender puts requests on a stream, in order: Send of a stream may block and must not be called
// concurrently. A nil sender drops its requests: the next stream begins with all watches.
type sender struct {
	mu    sync.Mutex
	queue []*pb.WatchRequest
	wake  chan struct{} // holds a value while the queue is not empty
}

func newSender() *sender { return &sender{wake: make(chan struct{}, 1)} }

func (o *sender) send(r *pb.WatchRequest) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, r)
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run sends until ctx ends, which ends with the stream, and returns its cause.
func (o *sender) run(ctx context.Context, to Link) error {
	for {
		select {
		case <-o.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		o.mu.Lock()
		queue := o.queue
		o.queue = nil
		o.mu.Unlock()
		for _, r := range queue {
			if to.Send(r) != nil {
				<-ctx.Done() // Recv returns the reason, and ends it
				return context.Cause(ctx)
			}
		}
	}
}
