package fence

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Conn returns a gRPC connection for one tenure over one that many tenures share. Each call carries
// the tenure's token. After the tenure's end nothing is sent: no call, no message, and no end of a
// stream. The error then wraps eldest.ErrNotLeading and the cause of the end. The error of a call
// that the fence refused is a *RefusedError.
//
//	client := kvpb.NewKVClient(fence.Conn(conn, leadership))
//
// The tenure is checked before a call or message is sent. Give calls the leading context, and they
// end when the tenure does.
func Conn(conn grpc.ClientConnInterface, t Tenure) grpc.ClientConnInterface {
	return tenureConn{conn, t}
}

type tenureConn struct {
	conn   grpc.ClientConnInterface
	tenure Tenure
}

// Invoke makes a unary call; see grpc.ClientConnInterface.
func (c tenureConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return UnaryClient(c.tenure)(ctx, method, args, reply, nil, func(ctx context.Context, method string, args, reply any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
		return c.conn.Invoke(ctx, method, args, reply, opts...)
	}, opts...)
}

// NewStream opens a stream; see grpc.ClientConnInterface.
func (c tenureConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return StreamClient(c.tenure)(ctx, desc, nil, method, func(ctx context.Context, desc *grpc.StreamDesc, _ *grpc.ClientConn, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		return c.conn.NewStream(ctx, desc, method, opts...)
	}, opts...)
}

// UnaryClient is Conn for unary calls, as an interceptor of a connection that only one tenure uses.
func UnaryClient(t Tenure) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, args, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx, err := stamped(ctx, t)
		if err != nil {
			return err
		}
		return understood(t, invoke(ctx, method, args, reply, conn, opts...))
	}
}

// StreamClient is Conn for streams, as an interceptor of a connection that only one tenure uses.
func StreamClient(t Tenure) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx, err := stamped(ctx, t)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(ctx)
		s, err := open(ctx, desc, conn, method, opts...)
		if err != nil {
			cancel()
			return nil, understood(t, err)
		}
		return &tenureStream{ClientStream: s, tenure: t, many: desc.ServerStreams, cancel: cancel}, nil
	}
}

// stamped returns ctx with the token, which replaces any other one.
func stamped(ctx context.Context, t Tenure) (context.Context, error) {
	value, err := stamp(t)
	if err != nil {
		return nil, err
	}
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	if md == nil {
		md = make(metadata.MD, 1)
	}
	md.Set(metadataKey, value)
	return metadata.NewOutgoingContext(ctx, md), nil
}

// tenureStream sends nothing after the tenure's end.
type tenureStream struct {
	grpc.ClientStream
	tenure Tenure
	many   bool // the server may answer more than once
	cancel context.CancelFunc

	mu   sync.Mutex
	over error // why this side cancelled the stream
}

// SendMsg sends a message of the tenure; see grpc.ClientStream. After the tenure's end it cancels
// the stream, so that the server does not wait for the rest.
func (s *tenureStream) SendMsg(m any) error {
	if err := s.ended(); err != nil {
		return err
	}
	err := s.ClientStream.SendMsg(m)
	if err != nil && !errors.Is(err, io.EOF) { // after io.EOF RecvMsg has the error
		s.cancel() // the stream is over
	}
	return err
}

// CloseSend ends the messages of the tenure; see grpc.ClientStream. After the tenure's end it
// cancels the stream instead: a server may commit what it has received when the stream ends.
func (s *tenureStream) CloseSend() error {
	if err := s.ended(); err != nil {
		return err
	}
	return s.ClientStream.CloseSend()
}

// ended cancels the stream if the tenure is over, and returns the reason.
func (s *tenureStream) ended() error {
	err := ended(s.tenure)
	if err != nil {
		s.mu.Lock()
		s.over = err
		s.mu.Unlock()
		s.cancel()
	}
	return err
}

// RecvMsg receives a message; see grpc.ClientStream. If this side has cancelled the stream, the error
// is the end of the tenure, unless the server had answered before.
func (s *tenureStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil && s.many {
		return nil
	}
	s.cancel() // the stream is over
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil && (status.Code(err) == codes.Canceled || errors.Is(err, context.Canceled)) {
		return s.over
	}
	return understood(s.tenure, err)
}

// Header waits for the header; see grpc.ClientStream.
func (s *tenureStream) Header() (metadata.MD, error) {
	md, err := s.ClientStream.Header()
	return md, understood(s.tenure, err)
}
