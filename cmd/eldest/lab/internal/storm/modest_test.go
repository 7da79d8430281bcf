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

// route is a connection of a client's: to one node, or to the leader that the resolver finds.
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

// The modest client's workers on each route, and the time between two calls of one.
const (
	unaries = 5
	pause   = 100 * time.Millisecond
)

// patience are the deadlines of the modest client's calls. The longest outlasts a lease.
var patience = []time.Duration{time.Second, 3 * time.Second, 8 * time.Second}

// modest asks on all routes until ctx ends, and blocks until the last call has ended.
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

// work has a worker call until ctx ends.
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
	return &call{id: fmt.Sprintf("%d.%d", w.number, w.calls), greedy: w.greedy, kind: kind, route: w.name, node: w.node}
}

func (w *worker) patience() time.Duration { return patience[w.rng.IntN(len(patience))] }

// done notes the call. to is who answered, for the resolver's routes.
func (w *worker) done(c *call, to *peer.Peer, err error) {
	c.ended(err)
	if c.node == "" && to.Addr != nil {
		c.node = w.at(to.Addr.String())
	}
	w.note(c)
}

// draw draws what is asked for; logs are short.
func (w *worker) draw(c *call) service.Attempt {
	a := service.Attempt{Event: "attempt", ID: c.id, Node: w.name}
	service.Draw(&a, w.rng, int(time.Since(w.begin)/time.Second))
	return a
}

// unary writes or reads.
func (w *worker) unary() {
	c := w.call("")
	a := w.draw(c)
	c.kind = string(a.Method)
	ctx, cancel := of(context.Background(), c, w.patience())
	defer cancel()
	var to peer.Peer
	err := a.Send(ctx, w.conn, grpc.Peer(&to))
	w.done(c, &to, err)
	w.attempt(a)
}

// list reads all keys of the modest client on a stream, each as a read that is audited.
func (w *worker) list() {
	c := w.call("list")
	ctx, cancel := of(context.Background(), c, w.patience())
	defer cancel()
	var to peer.Peer
	items, err := kvpb.NewKVClient(w.conn).List(ctx, &kvpb.ListRequest{Prefix: "key-"}, grpc.Peer(&to))
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
	w.done(c, &to, withoutEOF(err))
}

// stream writes some times on one stream, with a pause between, and waits for each
// acknowledgement.
func (w *worker) stream() {
	c := w.call("stream")
	ctx, cancel := of(context.Background(), c, w.patience())
	defer cancel()
	var to peer.Peer
	stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, witness.AppendStream, grpc.Peer(&to))
	for n := 1; err == nil && n <= 4; n++ {
		a := service.Attempt{Event: "attempt", ID: fmt.Sprintf("%s-%d", c.id, n), Node: w.name, Method: service.Append}
		a.Key, a.Value = fmt.Sprintf("stream-%d-%d", w.number, w.calls/20), a.ID+";"
		a.Begin = time.Now().Round(0)
		var answer kvpb.AppendResponse
		_ = stream.SendMsg(&kvpb.AppendRequest{RequestId: a.ID, Key: a.Key, Value: []byte(a.Value)}) // the receive says why
		err = stream.RecvMsg(&answer)
		a.Ended(answer.GetReceipt(), err, true)
		w.attempt(a)
		if err == nil {
			c.acknowledged++
			time.Sleep(time.Duration(w.rng.ExpFloat64() * float64(pause/2)))
		}
	}
	if err == nil {
		_ = stream.CloseSend() // the receive says why
		err = withoutEOF(stream.RecvMsg(new(kvpb.AppendResponse)))
	}
	w.done(c, &to, err)
}

// upload sends the one message of a unary call late.
func (w *worker) upload() {
	c := w.call("late upload")
	ctx, cancel := of(context.Background(), c, patience[len(patience)-1])
	defer cancel()
	var to peer.Peer
	stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{}, kvpb.KV_Append_FullMethodName, grpc.Peer(&to))
	if err == nil {
		time.Sleep(time.Duration(w.rng.ExpFloat64() * float64(every/2)))
		a := service.Attempt{Event: "attempt", ID: c.id, Node: w.name, Method: service.Append}
		a.Key, a.Value = fmt.Sprintf("upload-%d-%d", w.number, w.calls/20), a.ID+";"
		a.Begin = time.Now().Round(0)
		var answer kvpb.AppendResponse
		_ = stream.SendMsg(&kvpb.AppendRequest{RequestId: a.ID, Key: a.Key, Value: []byte(a.Value)}) // the receive says why
		err = stream.RecvMsg(&answer)
		a.Ended(answer.GetReceipt(), err, true)
		w.attempt(a)
	}
	w.done(c, &to, err)
}

func withoutEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
