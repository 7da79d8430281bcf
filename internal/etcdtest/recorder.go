package etcdtest

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Recorder counts and keeps what the clients it is attached to send, and the watch events they
// receive, on the wire: an attempt that the client repeats by itself counts again. Its methods may
// be called from many goroutines.
type Recorder struct {
	mu     sync.Mutex
	calls  []Call
	events []Event
	placed []string // the keys of the watches that etcd has created
}

// Call is one request: a unary call, or one message on a stream.
type Call struct {
	// Method is the last part of the gRPC name: "Range", "Put", "Txn",
	// "DeleteRange", "LeaseGrant", "LeaseRevoke", "LeaseKeepAlive", "Watch".
	Method string
	// Request is the message, such as *etcdserverpb.TxnRequest. It must not
	// be changed.
	Request any
	// At is when it was passed to gRPC.
	At time.Time
}

// Event is one watch event that a client received.
type Event struct {
	*clientv3.Event
	// At is when it arrived.
	At time.Time
}

// Attach makes the recorder record the client that is made with cfg: cluster.Client(t, rec.Attach).
// It may be attached to several clients.
func (r *Recorder) Attach(cfg *clientv3.Config) {
	cfg.DialOptions = append(slices.Clone(cfg.DialOptions),
		grpc.WithChainUnaryInterceptor(r.unary), grpc.WithChainStreamInterceptor(r.stream))
}

// Calls returns the requests with the given methods, or with any, in the order of sending.
func (r *Recorder) Calls(methods ...string) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []Call
	for _, c := range r.calls {
		if len(methods) == 0 || slices.Contains(methods, c.Method) {
			calls = append(calls, c)
		}
	}
	return calls
}

// Count is the number of Calls.
func (r *Recorder) Count(methods ...string) int { return len(r.Calls(methods...)) }

// Methods lists the methods of all calls in the order of sending, for tests in which every request
// counts.
func (r *Recorder) Methods() []string {
	names := []string{}
	for _, c := range r.Calls() {
		names = append(names, c.Method)
	}
	return names
}

// Placed returns the keys of the watches that etcd has created, in order.
func (r *Recorder) Placed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.placed)
}

// Events returns the watch events that arrived, in order.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Reset discards everything that was recorded so far.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls, r.events, r.placed = nil, nil, nil
}

// Questions removes from calls what only a busy machine adds: etcd sends an event a moment before
// it answers a read at its revision, so that the read is repeated, and after three such answers the
// newest state is read.
func Questions(calls []Call) (all []Call) {
	same := 0
	for i, call := range calls {
		if i > 0 && fmt.Sprint(call.Request) == fmt.Sprint(calls[i-1].Request) {
			same++
			continue
		}
		if same != 2 {
			all = append(all, call)
		}
		same = 0
	}
	return all
}

func (r *Recorder) sent(method string, req any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, Call{Method: path.Base(method), Request: req, At: time.Now()})
}

// received keeps what a watch received. key is the watch's key if resp confirms that etcd has created
// it.
func (r *Recorder) received(resp *etcdserverpb.WatchResponse, key string) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if resp.Created {
		r.placed = append(r.placed, key)
	}
	for _, ev := range resp.Events {
		r.events = append(r.events, Event{Event: (*clientv3.Event)(ev), At: now}) //nolint:unconvert // two types before client 3.7
	}
}

func (r *Recorder) unary(ctx context.Context, method string, req, resp any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	r.sent(method, req)
	return invoke(ctx, method, req, resp, cc, opts...)
}

func (r *Recorder) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &recordedStream{ClientStream: s, recorder: r, method: method}, nil
}

// recordedStream records the messages of a stream, not its opening, which sends nothing that a
// caller would see.
type recordedStream struct {
	grpc.ClientStream
	recorder *Recorder
	method   string

	mu    sync.Mutex
	asked []string // keys of watches that etcd has not created yet, in the order of its answers
}

func (s *recordedStream) SendMsg(m any) error {
	s.recorder.sent(s.method, m)
	if watch, ok := m.(*etcdserverpb.WatchRequest); ok && watch.GetCreateRequest() != nil {
		s.mu.Lock()
		s.asked = append(s.asked, string(watch.GetCreateRequest().Key))
		s.mu.Unlock()
	}
	return s.ClientStream.SendMsg(m)
}

func (s *recordedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if resp, ok := m.(*etcdserverpb.WatchResponse); ok && err == nil {
		var key string
		if resp.Created {
			s.mu.Lock()
			key, s.asked = s.asked[0], s.asked[1:]
			s.mu.Unlock()
		}
		s.recorder.received(resp, key)
	}
	return err
}
