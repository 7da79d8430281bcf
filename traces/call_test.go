package traces_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/traces"
)

// seen is a service that reports the span in each handler's context.
type seen struct {
	kvpb.KVServer
	spans chan<- trace.SpanContext
}

func (s seen) Get(ctx context.Context, in *kvpb.GetRequest) (*kvpb.Item, error) {
	s.spans <- trace.SpanContextFromContext(ctx)
	if in.GetKey() == "hang" {
		<-ctx.Done()
	}
	return s.KVServer.Get(ctx, in)
}

// A configuration that a curator refuses is also refused with traces: they add an option to the
// connections to leaders, which does not show how those are secured.
func TestInstrumentExcusesNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	cfg := curator.Config{
		Elector:   elector.Config{Election: t.Name(), NodeID: "a", Source: elector.Always(elector.Client(etcdtest.Shared(t).Client(t)))},
		Listeners: []curator.Listener{{Listener: listener, Credentials: insecure.NewCredentials()}},
		Services:  func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error { return nil },
	}
	_, err = curator.New(traces.Instrument(cfg, noop.NewTracerProvider(), propagation.TraceContext{}))
	require.ErrorIs(t, err, eldest.ErrInvalid)
	require.ErrorContains(t, err, "plain text")
}

// node runs a curator with traces until the test ends.
func node(t *testing.T, r *recorder, id string, spans chan<- trace.SpanContext) (*curator.Curator, kvpb.KVClient) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c, err := curator.New(traces.Instrument(curator.Config{
		Elector: elector.Config{
			Election: t.Name(), NodeID: id, Source: elector.Always(elector.Client(etcdtest.Shared(t).Client(t))),
			Session: lease.Options{TTL: ttl},
		},
		Listeners: []curator.Listener{{Listener: listener}},
		VerifyHop: func(context.Context, string) error { return nil }, // all callers are this test
		Services: func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			server, err := kv.New(ctx, l)
			if err != nil {
				return err
			}
			kvpb.RegisterKVServer(r, seen{server, spans})
			return nil
		},
	}, r, propagation.TraceContext{}))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := etcdtest.Go(func() error { return c.Run(ctx) })
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		stop()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return c, kvpb.NewKVClient(conn)
}

func until(ctx context.Context, t *testing.T, c *curator.Curator, role elector.Role) elector.Status {
	t.Helper()
	s, err := c.Watch().NextWhere(ctx, func(s elector.Status) bool { return s.Role() == role })
	require.NoError(t, err)
	return s
}

// chain checks that each span is the child of the one before it, from the caller's span on, in one
// trace.
func chain(t *testing.T, caller trace.SpanContext, line ...tracetest.SpanStub) {
	t.Helper()
	parent := caller
	for i, span := range line {
		require.Equal(t, caller.TraceID(), span.SpanContext.TraceID(), "span %d", i)
		require.Equal(t, parent.SpanID(), span.Parent.SpanID(), "span %d", i)
		parent = span.SpanContext
	}
}

// kinds returns the spans of one forwarded call: at the follower, of the hop, and at the leader.
func kinds(t *testing.T, spans []tracetest.SpanStub) (follower, hop, leader tracetest.SpanStub) {
	t.Helper()
	for _, span := range spans {
		switch {
		case span.SpanKind == trace.SpanKindClient:
			hop = span
		case attr(span.Attributes, "eldest.forwarded_from") != nil:
			leader = span
		default:
			follower = span
		}
	}
	require.NotEmpty(t, follower.Name)
	require.NotEmpty(t, hop.Name)
	require.NotEmpty(t, leader.Name)
	return follower, hop, leader
}

// A call that a follower forwards is one trace from the caller to the handler: a unary call the
// first time, then as one message in each direction, and a stream; the spans have the status of the
// call.
func TestForwardedCallIsOneTrace(t *testing.T) {
	ctx := etcdtest.Context(t)
	r := newRecorder(t)
	handled := make(chan trace.SpanContext, 10)
	anna, _ := node(t, r, "anna", handled)
	leads := until(ctx, t, anna, elector.Leading)
	bert, shop := node(t, r, "bert", handled)
	until(ctx, t, bert, elector.Following)
	_, token, _ := leads.Own()

	// begin is what an instrumented caller does.
	begin := func(name string) (context.Context, trace.SpanContext) {
		ctx, span := r.Tracer("test").Start(ctx, name)
		defer span.End()
		md := metadata.MD{}
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(md))
		return metadata.NewOutgoingContext(ctx, lower(md)), span.SpanContext()
	}

	const get = "eldest.kv.v1.KV/Get"
	for range 2 { // the second time the curator has learned that the method is unary
		r.Reset()
		calling, caller := begin("caller")
		_, err := shop.Get(calling, &kvpb.GetRequest{Key: "absent"})
		require.Equal(t, grpccodes.NotFound, status.Code(err))
		follower, hop, leader := kinds(t, r.ended(get, 3))
		chain(t, caller, follower, hop, leader)
		require.Equal(t, leader.SpanContext.SpanID(), (<-handled).SpanID(), "the handler's context has the leader's span")
		require.Equal(t, "bert", attr(follower.Attributes, "eldest.node"))
		require.Equal(t, true, attr(hop.Attributes, "eldest.hop"))
		require.Equal(t, "anna", attr(leader.Attributes, "eldest.node"))
		require.Equal(t, "bert", attr(leader.Attributes, "eldest.forwarded_from"))
		require.Equal(t, int64(token), attr(leader.Attributes, "eldest.token"))
		for _, span := range []tracetest.SpanStub{follower, hop, leader} {
			require.Equal(t, int64(grpccodes.NotFound), attr(span.Attributes, "rpc.grpc.status_code"))
			require.Equal(t, "Get", attr(span.Attributes, "rpc.method"))
			require.Equal(t, "eldest.kv.v1.KV", attr(span.Attributes, "rpc.service"))
		}
		require.Equal(t, codes.Unset, leader.Status.Code, "not the server's fault")
		require.Equal(t, codes.Error, hop.Status.Code)
	}

	calling, caller := begin("caller of a stream")
	stream, err := shop.List(calling, &kvpb.ListRequest{})
	require.NoError(t, err)
	for err == nil {
		_, err = stream.Recv()
	}
	require.True(t, errors.Is(err, io.EOF), err)
	follower, hop, leader := kinds(t, r.ended("eldest.kv.v1.KV/List", 3))
	chain(t, caller, follower, hop, leader)
	require.Equal(t, int64(grpccodes.OK), attr(hop.Attributes, "rpc.grpc.status_code"))
	require.Equal(t, codes.Unset, hop.Status.Code)
}

// A call to the leader itself has one span, without a forwarding node.
func TestCallThatIsServedHere(t *testing.T) {
	ctx := etcdtest.Context(t)
	r := newRecorder(t)
	anna, shop := node(t, r, "anna", make(chan trace.SpanContext, 10))
	until(ctx, t, anna, elector.Leading)
	require.NoError(t, etcdtest.Err(shop.Put(ctx, &kvpb.PutRequest{RequestId: "1", Key: "k", Value: []byte("v")})))
	span := r.ended("eldest.kv.v1.KV/Put", 1)[0]
	require.Nil(t, attr(span.Attributes, "eldest.forwarded_from"))
	require.False(t, span.Parent.IsValid())
	require.Equal(t, codes.Unset, span.Status.Code)
	require.NotEmpty(t, r.ended("eldest.campaign", 1), "the curator's campaign is written down as well")
}

// A caller that cancels its call ends all spans of the call.
func TestSpansEndWithTheCaller(t *testing.T) {
	ctx := etcdtest.Context(t)
	r := newRecorder(t)
	blocked := make(chan trace.SpanContext)
	anna, _ := node(t, r, "anna", blocked)
	until(ctx, t, anna, elector.Leading)
	bert, shop := node(t, r, "bert", blocked)
	until(ctx, t, bert, elector.Following)
	calling, hangUp := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := shop.Get(calling, &kvpb.GetRequest{Key: "hang"})
		done <- err
	}()
	var got trace.SpanContext
	select {
	case got = <-blocked:
	case err := <-done:
		require.FailNow(t, "it did not come to the handler", "%v", err)
	}
	hangUp()
	require.Equal(t, grpccodes.Canceled, status.Code(<-done))
	follower, hop, leader := kinds(t, r.ended("eldest.kv.v1.KV/Get", 3))
	require.Equal(t, got.SpanID(), leader.SpanContext.SpanID())
	chain(t, follower.SpanContext, hop, leader)
}

// A forwarding call that ends without having read the reply ends the hop's span, and so does a
// leader that cannot be reached.
func TestHopEndsWithItsCall(t *testing.T) {
	r := newRecorder(t)
	around := traces.Hop(r, propagation.TraceContext{})
	conn, err := grpc.NewClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	calling, leave := context.WithCancel(t.Context())
	var sent metadata.MD
	_, err = around(calling, &grpc.StreamDesc{ServerStreams: true}, conn, "/a.B/C",
		func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			sent, _ = metadata.FromOutgoingContext(ctx)
			return nil, nil //nolint:nilnil // nobody reads
		})
	require.NoError(t, err)
	require.Len(t, sent.Get("traceparent"), 1)
	require.Empty(t, r.GetSpans(), "it is under way")
	leave()
	span := r.ended("a.B/C", 1)[0]
	require.Equal(t, int64(grpccodes.Canceled), attr(span.Attributes, "rpc.grpc.status_code"))
	require.Equal(t, codes.Error, span.Status.Code)

	r.Reset()
	refused := status.Error(grpccodes.Unavailable, "nobody there")
	_, err = around(t.Context(), &grpc.StreamDesc{}, conn, "/a.B/C",
		func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, refused
		})
	require.Equal(t, refused, err)
	require.Equal(t, "nobody there", r.ended("a.B/C", 1)[0].Status.Description)
}

// The status of a hop is that of the call at gRPC: a forwarding call that was cancelled is Canceled,
// whatever the cause says, and a message that could not be sent has ended the call.
func TestHopHasTheStatusOfItsCall(t *testing.T) {
	r := newRecorder(t)
	around := traces.Hop(r, propagation.TraceContext{})
	conn, err := grpc.NewClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	calling, leave := context.WithCancelCause(t.Context())
	open := func(name string, sending error) grpc.ClientStream {
		stream, err := around(calling, &grpc.StreamDesc{}, conn, name,
			func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				return mute{sending: sending}, nil
			})
		require.NoError(t, err)
		return stream
	}
	large := status.Error(grpccodes.ResourceExhausted, "too large")
	require.Equal(t, large, open("/a.B/Large", large).SendMsg(nil))
	require.Equal(t, io.EOF, open("/a.B/Ended", io.EOF).SendMsg(nil), "RecvMsg has the status")
	leave(errors.New("no room"))
	span := r.ended("a.B/Large", 1)[0]
	require.Equal(t, int64(grpccodes.ResourceExhausted), attr(span.Attributes, "rpc.grpc.status_code"))
	require.Equal(t, "too large", span.Status.Description)
	span = r.ended("a.B/Ended", 1)[0]
	require.Equal(t, int64(grpccodes.Canceled), attr(span.Attributes, "rpc.grpc.status_code"))
	require.Equal(t, "no room", span.Status.Description)
}

// mute is a stream that does not answer.
type mute struct {
	grpc.ClientStream
	sending error
}

func (m mute) SendMsg(any) error { return m.sending }

// lower converts the keys to lower case, as in HTTP/2.
func lower(md metadata.MD) metadata.MD {
	out := metadata.MD{}
	for key, values := range md {
		out.Append(key, values...)
	}
	return out
}
