package storm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
	"github.com/eldest-io/eldest/cmd/eldest/lab/witness"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// route is a connection of a client: to one node, or to the leader that the resolver finds.
type route struct {
	name string
	conn *grpc.ClientConn
	node string // "": the resolver's choice
}

// worker makes one call after another, of one kind.
type worker struct {
	*storm
	route
	rng    *rand.Rand
	number int
	calls  int
	greedy bool
}

// The modest client's workers on each route, and the time between two calls of one worker.
const (
	unaries = 5
	pause   = 100 * time.Millisecond
)

// patience are the deadlines of the modest client's calls. The longest outlasts a lease.
var patience = []time.Duration{time.Second, 3 * time.Second, 8 * time.Second}

// modest starts workers that make calls on all routes until ctx ends.
func (s *storm) modest(ctx context.Context, routes []route) {
	for _, r := range routes {
		for range unaries {
			s.work(ctx, r, false, pause, (*worker).unary)
		}
		s.work(ctx, r, false, 2*pause, (*worker).list)
		s.work(ctx, r, false, 2*pause, (*worker).stream)
		s.work(ctx, r, false, 2*pause, (*worker).stream)
		s.work(ctx, r, false, 2*pause, (*worker).upload)
	}
}

// work starts a worker that makes calls until ctx ends.
func (s *storm) work(ctx context.Context, r route, greedy bool, pause time.Duration, do func(*worker)) {
	s.workers++
	w := &worker{storm: s, route: r, number: s.workers, rng: rand.New(rand.NewPCG(s.seed, uint64(s.workers))), greedy: greedy}
	s.clients.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(w.rng.ExpFloat64() * float64(pause))):
				do(w)
			}
		}
	})
}

func (w *worker) call(kind string) *call {
	w.calls++
	return &call{id: fmt.Sprintf("%d.%d", w.number, w.calls), greedy: w.greedy, kind: kind, node: w.node}
}

func (w *worker) patience() time.Duration { return patience[w.rng.IntN(len(patience))] }

// do makes a call within a limit, and records how it ended.
func (w *worker) do(c *call, limit time.Duration, send func(ctx context.Context, options ...grpc.CallOption) error) {
	ctx, cancel := of(context.Background(), c, limit)
	defer cancel()
	var to peer.Peer // the node that answered, for the resolver's routes
	err := send(ctx, grpc.Peer(&to))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	c.ended(err)
	if c.node == "" && to.Addr != nil {
		c.node = w.at(to.Addr.String())
	}
	w.note(c)
}

// pause blocks for a random time with this mean.
func (w *worker) pause(mean time.Duration) {
	time.Sleep(time.Duration(w.rng.ExpFloat64() * float64(mean)))
}

// unary writes or reads. Logs are short.
func (w *worker) unary() {
	c := w.call("")
	a := service.Attempt{Event: "attempt", ID: c.id, Node: w.name}
	service.Draw(&a, w.rng, int(time.Since(w.begin)/time.Second))
	c.kind = string(a.Method)
	w.do(c, w.patience(), func(ctx context.Context, options ...grpc.CallOption) error {
		return a.Send(ctx, w.conn, options...)
	})
	w.attempt(a)
}

// list reads all keys of the modest client on a stream, each as a read that is audited.
func (w *worker) list() {
	c := w.call("list")
	w.do(c, w.patience(), func(ctx context.Context, options ...grpc.CallOption) error {
		items, err := kvpb.NewKVClient(w.conn).List(ctx, &kvpb.ListRequest{Prefix: "key-"}, options...)
		for n := 1; err == nil; n++ {
			var item *kvpb.Item
			if item, err = items.Recv(); err != nil {
				break
			}
			w.attempt(service.Attempt{
				ID: fmt.Sprintf("%s-%d", c.id, n), Begin: c.begin.Round(0), At: time.Now().Round(0), Node: w.name, Method: service.Get,
				Key: item.GetKey(), Found: string(item.GetValue()), Revision: item.GetRevision(), Outcome: service.Done,
			})
		}
		return err
	})
}

// stream makes some writes on one stream, with pauses in between, and waits for each
// acknowledgement.
func (w *worker) stream() {
	c := w.call("stream")
	w.do(c, w.patience(), func(ctx context.Context, options ...grpc.CallOption) error {
		stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, witness.AppendStream, options...)
		for n := 1; err == nil && n <= 4; n++ {
			if err = w.append(stream, fmt.Sprintf("%s-%d", c.id, n), "stream"); err == nil {
				c.acknowledged++
				w.pause(pause / 2)
			}
		}
		if err != nil {
			return err
		}
		_ = stream.CloseSend() // the receive returns the reason
		return stream.RecvMsg(new(kvpb.AppendResponse))
	})
}

// upload sends the one message of a unary call late.
func (w *worker) upload() {
	c := w.call("late upload")
	c.late = true // it reads only when it has sent
	w.do(c, patience[len(patience)-1], func(ctx context.Context, options ...grpc.CallOption) error {
		stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{}, kvpb.KV_Append_FullMethodName, options...)
		if err != nil {
			return err
		}
		w.pause(every / 2)
		return w.append(stream, c.id, "upload")
	})
}

// append sends one write on an open stream, and waits for its acknowledgement.
func (w *worker) append(stream grpc.ClientStream, id, kind string) error {
	a := service.Attempt{
		Event: "attempt", ID: id, Node: w.name, Method: service.Append, Begin: time.Now().Round(0),
		Key: fmt.Sprintf("%s-%d-%d", kind, w.number, w.calls/20), Value: id + ";",
	}
	var answer kvpb.AppendResponse
	_ = stream.SendMsg(&kvpb.AppendRequest{RequestId: a.ID, Key: a.Key, Value: []byte(a.Value)}) // the receive returns the reason
	err := stream.RecvMsg(&answer)
	a.Ended(answer.GetReceipt(), err, true)
	w.attempt(a)
	return err
}
