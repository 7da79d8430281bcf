package curator

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// message is the request and the answer of the test service.
type message = wrapperspb.BytesValue

// script is a service whose methods the test writes: one for each kind of call.
type script struct {
	unary  func(ctx context.Context, in *message) (*message, error)
	stream func(stream grpc.ServerStream) error // client, server and bidirectional
}

// The methods of the script.
const (
	unaryMethod  = "/test.Script/Unary"
	clientMethod = "/test.Script/Client"
	serverMethod = "/test.Script/Server"
	bidiMethod   = "/test.Script/Bidi"
)

// echoing sends back each message until the caller has sent all.
var echoing = &script{unary: echo, stream: echoes}

func echo(_ context.Context, in *message) (*message, error) { return in, nil }

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

// waiting is a script whose handlers wait for the end of their context, and report that
// they have begun.
func waiting() (*script, chan struct{}) {
	began := make(chan struct{}, 100)
	return &script{unary: func(ctx context.Context, _ *message) (*message, error) {
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}, stream: func(stream grpc.ServerStream) error {
		if err := replies(stream, "begun"); err != nil {
			return err
		}
		began <- struct{}{}
		<-stream.Context().Done()
		return stream.Context().Err()
	}}, began
}

// held is a script whose unary handler reports that it has begun and echoes when it is released.
func held() (s *script, began, release chan struct{}) {
	began, release = make(chan struct{}, 100), make(chan struct{})
	return &script{unary: func(_ context.Context, in *message) (*message, error) {
		began <- struct{}{}
		<-release
		return in, nil
	}, stream: echoes}, began, release
}

// describe makes the description that a generator would make. Only the leader has it.
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
