package traces

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/hooks"
)

// Instrument returns a curator's configuration with all traces of this package: spans of its calls,
// of their hops to the leader and of its campaigns, in addition to the hooks and options that it
// has. propagator defines how a trace is sent in metadata; it must be the one that callers use,
// usually propagation.TraceContext{}.
func Instrument(cfg curator.Config, provider trace.TracerProvider, propagator propagation.TextMapPropagator) curator.Config {
	election, node := cfg.Elector.Election, cfg.Elector.NodeID
	told := Hooks(provider, election)
	cfg.Elector.Session.Hooks = hooks.Tee(cfg.Elector.Session.Hooks, told.Session)
	cfg.Elector.Candidate.Hooks = hooks.Tee(cfg.Elector.Candidate.Hooks, told.Candidate)
	cfg.ServerOptions = append(cfg.ServerOptions[:len(cfg.ServerOptions):len(cfg.ServerOptions)],
		grpc.ChainStreamInterceptor(Server(provider, propagator, election, node)))
	cfg.PeerOptions = append(cfg.PeerOptions[:len(cfg.PeerOptions):len(cfg.PeerOptions)],
		grpc.WithChainStreamInterceptor(Hop(provider, propagator)))
	return cfg
}

// Server returns an interceptor for curator.Config.ServerOptions: it makes a span of each call that
// the node receives, as a child of the caller's span, or of the hop's.
func Server(provider trace.TracerProvider, propagator propagation.TextMapPropagator, election, node string) grpc.StreamServerInterceptor {
	tracer := provider.Tracer(scope)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		ctx := stream.Context()
		md, _ := metadata.FromIncomingContext(ctx)
		attrs := append(method(info.FullMethod), attribute.String("eldest.election", election), attribute.String("eldest.node", node))
		if from, token, ok := curator.Forwarded(ctx); ok {
			attrs = append(attrs, attribute.String("eldest.forwarded_from", from), attribute.Int64("eldest.token", int64(token)))
		}
		ctx, span := tracer.Start(propagator.Extract(ctx, carrier(md)), strings.TrimPrefix(info.FullMethod, "/"),
			trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attrs...))
		ended := false
		defer func() {
			if !ended { // the handler panicked
				span.SetStatus(codes.Error, "the handler did not return")
				span.End()
			}
		}()
		err := handle(srv, traced{stream, ctx})
		ended = true
		answered(span, err, atServer)
		return err
	}
}

// traced is a stream whose context carries the span.
type traced struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a stream's context is the call's
}

func (t traced) Context() context.Context { return t.ctx }

// Hop returns an interceptor for curator.Config.PeerOptions: it makes a span of each call that is
// forwarded, and passes the span's context on to the leader.
func Hop(provider trace.TracerProvider, propagator propagation.TextMapPropagator) grpc.StreamClientInterceptor {
	tracer := provider.Tracer(scope)
	return func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, name string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		attrs := append(method(name), attribute.Bool("eldest.hop", true), attribute.String("server.address", conn.Target()))
		ctx, span := tracer.Start(ctx, strings.TrimPrefix(name, "/"), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
		md, _ := metadata.FromOutgoingContext(ctx) // a copy
		if md == nil {
			md = metadata.MD{}
		}
		propagator.Inject(ctx, carrier(md))
		stream, err := open(metadata.NewOutgoingContext(ctx, md), desc, conn, name, options...)
		h := &hop{ClientStream: stream, span: span, many: desc.ServerStreams}
		if err != nil {
			h.end(err)
			return nil, err
		}
		// The forwarding call may end before the reply has arrived.
		h.detach = context.AfterFunc(ctx, func() {
			// gRPC takes the code from the context's error, whatever the cause says.
			h.end(status.Error(status.FromContextError(ctx.Err()).Code(), context.Cause(ctx).Error()))
		})
		return h, nil
	}
}

// hop is a call to the leader in progress; its span ends with the reply, or with the call.
type hop struct {
	grpc.ClientStream
	span   trace.Span
	many   bool
	once   sync.Once
	detach func() bool
}

// SendMsg sends. Any error but io.EOF, after which RecvMsg returns the status, has ended the call.
func (h *hop) SendMsg(m any) error {
	err := h.ClientStream.SendMsg(m)
	if err != nil && !errors.Is(err, io.EOF) {
		h.detach()
		h.end(err)
	}
	return err
}

// RecvMsg receives, and ends the span with the call.
func (h *hop) RecvMsg(m any) error {
	err := h.ClientStream.RecvMsg(m)
	if err != nil || !h.many {
		h.detach()
		h.end(err)
	}
	return err
}

func (h *hop) end(err error) {
	h.once.Do(func() {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		answered(h.span, err, atClient)
	})
}

// method returns the attributes of a method's name.
func method(full string) []attribute.KeyValue {
	service, name, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	return []attribute.KeyValue{
		attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", service), attribute.String("rpc.method", name),
	}
}

// atServer reports whether a code is the server's fault; for a client every code but OK is a fault.
func atServer(code grpccodes.Code) bool {
	switch code {
	case grpccodes.Unknown, grpccodes.DeadlineExceeded, grpccodes.Unimplemented, grpccodes.Internal, grpccodes.Unavailable, grpccodes.DataLoss:
		return true
	}
	return false
}

func atClient(code grpccodes.Code) bool { return code != grpccodes.OK }

// answered ends the span of a call.
func answered(span trace.Span, err error, faulty func(grpccodes.Code) bool) {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	span.SetAttributes(attribute.Int("rpc.grpc.status_code", int(s.Code())))
	if faulty(s.Code()) {
		span.SetStatus(codes.Error, s.Message())
	}
	span.End()
}

// carrier is metadata as a propagator uses it.
type carrier metadata.MD

// Get returns the value of a key; "" if there is none.
func (c carrier) Get(key string) string {
	if values := metadata.MD(c).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set replaces the value of a key.
func (c carrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

// Keys returns all keys.
func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}
