package storm_test

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
	"github.com/eldest-io/eldest/cmd/eldest/lab/witness"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// What the greedy client holds and sends, for each node.
const (
	stalled = 8   // streams of each kind that are held
	large   = 12  // large messages at once
	crowd   = 150 // small calls at once

	// big is the size of each of the bigs that stalled readers request: together they are larger
	// than any window.
	big, bigs = 256 << 10, 12
	// tooBig is more than the service accepts, and less than the maximum size of a message: it goes
	// all the way to the leader, and nothing stays in etcd.
	tooBig = 1 << 20
)

// greedy uses more than its share on all routes until ctx ends.
func (s *storm) greedy(ctx context.Context, routes []route) {
	for _, r := range routes {
		for range stalled {
			s.work(ctx, r, true, pause, (*worker).deafReader)
			s.work(ctx, r, true, pause, (*worker).deafHandler)
			s.work(ctx, r, true, pause, (*worker).silent)
		}
		s.work(ctx, r, true, every, (*worker).burst)
		s.work(ctx, r, true, every, (*worker).crowd)
	}
}

// deafReader requests much and does not read it for a while.
func (w *worker) deafReader() {
	w.do(w.call("stalled reader"), 2*w.hold, func(ctx context.Context, _ ...grpc.CallOption) error {
		items, err := kvpb.NewKVClient(w.conn).List(ctx, &kvpb.ListRequest{Prefix: "big-"})
		if err == nil { // some pauses are shorter than a tenure
			w.pause(w.hold / 3)
		}
		for err == nil {
			_, err = items.Recv()
		}
		return err
	})
}

// deafHandler sends to a handler that does not receive, until the window is full.
func (w *worker) deafHandler() {
	w.do(w.call("stalled handler"), w.hold, func(ctx context.Context, _ ...grpc.CallOption) error {
		stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, witness.DeafStream)
		if err != nil {
			return err
		}
		for lump := (&kvpb.PutRequest{Value: make([]byte, 64<<10)}); stream.SendMsg(lump) == nil; {
		}
		return stream.RecvMsg(new(kvpb.PutResponse))
	})
}

// silent begins an upload, and sends nothing until its time is over.
func (w *worker) silent() {
	w.do(w.call("stalled upload"), w.hold, func(ctx context.Context, _ ...grpc.CallOption) error {
		stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{}, kvpb.KV_Put_FullMethodName)
		if err != nil {
			return err
		}
		return stream.RecvMsg(new(kvpb.PutResponse))
	})
}

// burst sends large messages at once.
func (w *worker) burst() {
	value := make([]byte, tooBig)
	w.together(large, "large message", func(ctx context.Context, kv kvpb.KVClient, c *call) error {
		_, err := kv.Put(ctx, &kvpb.PutRequest{RequestId: c.id, Key: "large", Value: value})
		return err
	})
}

// crowd sends many calls at once.
func (w *worker) crowd() {
	w.together(crowd, "one of a crowd", func(ctx context.Context, kv kvpb.KVClient, _ *call) error {
		_, err := kv.Get(ctx, &kvpb.GetRequest{Key: "crowd"}) // which does not exist
		return err
	})
}

func (w *worker) together(n int, kind string, send func(context.Context, kvpb.KVClient, *call) error) {
	var all sync.WaitGroup
	for range n {
		c := w.call(kind)
		all.Go(func() {
			w.do(c, 2*w.hold, func(ctx context.Context, _ ...grpc.CallOption) error {
				return send(ctx, kvpb.NewKVClient(w.conn), c)
			})
		})
	}
	all.Wait()
}

// fill writes what stalled readers request.
func (s *storm) fill(to route) {
	w := &worker{storm: s, route: to}
	for n := range bigs {
		a := service.Attempt{Event: "attempt", ID: fmt.Sprintf("big-%d", n), Node: to.name, Method: service.Append, Key: fmt.Sprintf("big-%d", n), Value: string(make([]byte, big))}
		ctx, cancel := context.WithTimeout(context.Background(), lifetime)
		if err := a.Send(ctx, to.conn); err != nil {
			w.problem("the storm cannot be prepared: %v", err)
		}
		cancel()
		s.attempt(a)
	}
}
