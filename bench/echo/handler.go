package echo

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// message is the request and the answer of all methods.
type message = wrapperspb.BytesValue

// The methods: one for each kind of call.
const (
	service     = "eldest.bench.Echo"
	unaryMethod = "Unary"
	serverSide  = "ServerStream"
	bothSides   = "Bidi"
)

var (
	serverStream = grpc.StreamDesc{StreamName: serverSide, ServerStreams: true, Handler: repeat}
	bidiStream   = grpc.StreamDesc{StreamName: bothSides, ServerStreams: true, ClientStreams: true, Handler: echo}
	description  = grpc.ServiceDesc{
		ServiceName: service,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: unaryMethod, Handler: unary}},
		Streams:     []grpc.StreamDesc{serverStream, bidiStream},
	}
)

// handler is the implementation. It is called at the beginning of each call, with the call's
// context.
type handler func(ctx context.Context)

func unary(impl any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // gRPC's signature
	m := &message{}
	if err := decode(m); err != nil {
		return nil, err
	}
	impl.(handler)(ctx)
	return m, nil
}

// repeat sends the message that it receives as often as a stream has messages.
func repeat(impl any, stream grpc.ServerStream) error {
	m := &message{}
	if err := stream.RecvMsg(m); err != nil {
		return err
	}
	impl.(handler)(stream.Context())
	for range StreamLength(len(m.GetValue())) {
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
	return nil
}

// echo sends each message that it receives.
func echo(impl any, stream grpc.ServerStream) error {
	impl.(handler)(stream.Context())
	for m := (&message{}); ; {
		if err := stream.RecvMsg(m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
}
