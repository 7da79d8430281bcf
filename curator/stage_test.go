package curator

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// message is what the test service takes and gives.
type message = wrapperspb.BytesValue

// script is a service whose methods the test writes: one for each kind of call.
type script struct {
	unary  func(ctx context.Context, in *message) (*message, error)
	stream func(stream grpc.ServerStream) error // client, server and bidirectional
}

func echo(_ context.Context, in *message) (*message, error) { return in, nil }

// The methods of the script.
const (
	unaryMethod  = "/test.Script/Unary"
	clientMethod = "/test.Script/Client"
	serverMethod = "/test.Script/Server"
	bidiMethod   = "/test.Script/Bidi"
)

// describe makes the description that a generator would: no node but the leader has it.
func describe(service string) *grpc.ServiceDesc {
	stream := func(srv any, stream grpc.ServerStream) error { return srv.(*script).stream(stream) }
	return &grpc.ServiceDesc{
		ServiceName: service,
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Unary", Handler: func(srv any, ctx context.Context, dec func(any) error, around grpc.UnaryServerInterceptor) (any, error) {
			in := &message{}
			if err := dec(in); err != nil {
				return nil, err
			}
			if around == nil {
				return srv.(*script).unary(ctx, in)
			}
			info := &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + service + "/Unary"}
			return around(ctx, in, info, func(ctx context.Context, in any) (any, error) { return srv.(*script).unary(ctx, in.(*message)) })
		}}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Client", Handler: stream, ClientStreams: true},
			{StreamName: "Server", Handler: stream, ServerStreams: true},
			{StreamName: "Bidi", Handler: stream, ClientStreams: true, ServerStreams: true},
		},
	}
}

// node is a curator whose route the test sets by hand: it stands in no election.
type node struct {
	*Curator
	t       testing.TB
	conn    *grpc.ClientConn // of a caller's
	address string
	calls   atomic.Int64 // of the script's handlers
}

// calm is the heartbeat of tests that are about something else: a leader in which a busy
// machine lets a thousand calls wait is not dead.
var calm = heartbeat{every: everyday.every, timeout: etcdtest.Patience, misses: 2}

// quick notices a dead leader within three seconds; one that is slower than that to answer on
// a busy machine is not dead.
var quick = heartbeat{every: 50 * time.Millisecond, timeout: 1500 * time.Millisecond, misses: 2}

func newNode(t testing.TB, id string, change ...func(*Config)) *node {
	t.Helper()
	return newNodeBeating(t, calm, id, change...)
}

func newNodeBeating(t testing.TB, beat heartbeat, id string, change ...func(*Config)) *node {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg := Config{
		Elector:  elector.Config{Election: "test", NodeID: id, Source: elector.Always(elector.Clients{})},
		Listener: listener,
		Services: func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error { return nil },
	}
	for _, f := range change {
		f(&cfg)
	}
	n := &node{t: t, address: listener.Addr().String()}
	n.Curator, err = build(cfg, beat)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- n.front.server.Serve(cfg.Listener) }()
	if cfg.ServerCredentials == nil {
		n.conn = dialTo(t, n.address)
	}
	t.Cleanup(func() {
		n.hush()
		if tenure := n.front.router.stop(errStopped); tenure != nil {
			over := make(chan struct{})
			go func() { defer close(over); tenure.finish(errStopped) }()
			etcdtest.Take(t, over, "the end of the handlers")
		}
		if n.conn != nil {
			require.NoError(t, n.conn.Close())
		}
		_ = n.front.close(10*time.Millisecond, errStopped)
		if err := <-served; !errors.Is(err, grpc.ErrServerStopped) { // it had hardly begun
			require.NoError(t, err)
		}
	})
	return n
}

func dialTo(t testing.TB, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)...)
	require.NoError(t, err)
	return conn
}

// leads has the node lead with a token, and serve the script.
func (n *node) leads(token eldest.Token, s *script) *tenure {
	n.t.Helper()
	t := n.tenure(token, s)
	n.front.router.lead(t)
	return t
}

// tenure makes a tenure without routing to it.
func (n *node) tenure(token eldest.Token, s *script) *tenure {
	n.t.Helper()
	t := newTenure(context.Background(), "test", token, func() bool { return true })
	r := newServices(n.front.local.names, nil)
	counted := &script{stream: func(stream grpc.ServerStream) error {
		n.calls.Add(1)
		return s.stream(stream)
	}, unary: func(ctx context.Context, in *message) (*message, error) {
		n.calls.Add(1)
		return s.unary(ctx, in)
	}}
	r.RegisterService(describe("test.Script"), counted)
	var err error
	t.methods, err = r.close()
	require.NoError(n.t, err)
	return t
}

// loses ends a tenure as the elector does.
func (n *node) loses(t *tenure, cause error) {
	n.front.router.leave(t, cause)
	t.finish(cause)
}

// as is the node as others know it while it leads.
func (n *node) as(token eldest.Token) elector.Leader {
	var l elector.Leader
	l.NodeID, l.Address, l.Instance, l.Token = n.cfg.Elector.NodeID, n.address, n.elector.Instance(), token
	return l
}

// pair is a leader and a follower.
func pair(t testing.TB, s *script, change ...func(*Config)) (leader, follower *node) {
	t.Helper()
	leader, follower = newNode(t, "leader", change...), newNode(t, "follower", change...)
	leader.leads(7, s)
	follower.front.router.follow(leader.as(7))
	return leader, follower
}

// unary calls the script's unary method.
func (n *node) unary(ctx context.Context, in string, options ...grpc.CallOption) (string, error) {
	out := &message{}
	err := n.conn.Invoke(ctx, unaryMethod, wrapperspb.Bytes([]byte(in)), out, options...)
	return string(out.GetValue()), err
}

// open begins a stream of one of the script's methods.
func (n *node) open(ctx context.Context, method string, options ...grpc.CallOption) *flow {
	n.t.Helper()
	desc := &grpc.StreamDesc{ClientStreams: method != serverMethod, ServerStreams: method != clientMethod}
	s, err := n.conn.NewStream(ctx, desc, method, options...)
	require.NoError(n.t, err)
	return &flow{t: n.t, ClientStream: s}
}

// flow is a caller's stream.
type flow struct {
	t testing.TB
	grpc.ClientStream
}

func (f *flow) send(s string) {
	f.t.Helper()
	require.NoError(f.t, f.SendMsg(wrapperspb.Bytes([]byte(s))))
}

func (f *flow) receive() (string, error) {
	m := &message{}
	err := f.RecvMsg(m)
	return string(m.GetValue()), err
}

// expect receives a message.
func (f *flow) expect(want string) {
	f.t.Helper()
	got, err := f.receive()
	require.NoError(f.t, err)
	require.Equal(f.t, want, got)
}

// end receives until the stream ends.
func (f *flow) end() error {
	for {
		if _, err := f.receive(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// received reads one message in a handler.
func received(stream grpc.ServerStream) (string, error) {
	m := &message{}
	err := stream.RecvMsg(m)
	return string(m.GetValue()), err
}

// replies sends one message from a handler.
func replies(stream grpc.ServerStream, s string) error {
	return stream.SendMsg(wrapperspb.Bytes([]byte(s)))
}

// echoes sends back each message until the caller has sent all.
func echoes(stream grpc.ServerStream) error {
	for {
		s, err := received(stream)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := replies(stream, s); err != nil {
			return err
		}
	}
}

// requireRetry asserts the answer of a node in the place of the service's, and returns
// its detail.
func requireRetry(t testing.TB, err error) *curatorpb.LostLeadership {
	t.Helper()
	st := status.Convert(err)
	require.Equal(t, codes.Unavailable, st.Code(), "%v", err)
	require.Contains(t, st.Message(), "can be retried")
	require.Len(t, st.Details(), 1, "%v", err)
	detail, ok := st.Details()[0].(*curatorpb.LostLeadership)
	require.True(t, ok)
	require.Equal(t, "test", detail.GetElection())
	return detail
}
