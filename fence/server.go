package fence

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
)

// unsure is what callers receive when the store has failed.
const unsure = "eldest: fence: the newest token cannot be read now; the request or message was not passed on"

// Handler returns a handler that passes admitted requests on to next, with the token in the context
// of the request (TokenFrom). It blocks as long as the store does. The answers are
//
//	412  an older token; see RefusedError.ServeHTTP
//	428  no token, unless Config.PassMissing
//	400  an invalid token, or one of another election
//	503  the store failed
//
// each with a line of text that explains it. next is not called then.
func (f *Fence) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, err := f.enter(r.Context(), r.Header.Values(Header))
		var refused *RefusedError
		switch {
		case err == nil:
			next.ServeHTTP(w, r.WithContext(ctx))
		case errors.Is(err, errStore): // whatever it wraps
			answer(w, http.StatusServiceUnavailable, unsure)
		case errors.As(err, &refused):
			refused.ServeHTTP(w, r)
		case errors.Is(err, errMissing):
			answer(w, http.StatusPreconditionRequired, err.Error())
		default:
			answer(w, http.StatusBadRequest, err.Error())
		}
	})
}

// UnaryServer returns an interceptor that passes only admitted calls on to their handlers, with the
// token in their context (TokenFrom). It blocks as long as the store does. The codes are
// FAILED_PRECONDITION for an older token, with a fencepb.Refused in the details; INVALID_ARGUMENT
// for a missing token, unless Config.PassMissing, for an invalid one, and for one of another
// election; UNAVAILABLE if the store failed.
func (f *Fence) UnaryServer() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		inside, err := f.enter(ctx, metadata.ValueFromIncomingContext(ctx, metadataKey))
		if err != nil {
			return nil, statusOf(ctx, err)
		}
		return handle(inside, req)
	}
}

// StreamServer is UnaryServer for streams. A stream may be longer than a tenure, so each message is
// also admitted before the handler receives it, and so is the end (io.EOF), at which a handler may
// commit what it has received. This calls the store for each of them. After a refusal the handler
// receives nothing more, whatever the store answers later. What the handler sends is not checked.
func (f *Fence) StreamServer() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		ctx := stream.Context()
		inside, err := f.enter(ctx, metadata.ValueFromIncomingContext(ctx, metadataKey))
		if err != nil {
			return statusOf(ctx, err)
		}
		return handle(srv, &fencedStream{ServerStream: stream, fence: f, ctx: inside})
	}
}

// fencedStream admits each message.
type fencedStream struct {
	grpc.ServerStream
	fence *Fence
	ctx   context.Context //nolint:containedctx // a stream's context is the call's

	mu   sync.Mutex
	over error // once refused, always refused
}

// Context carries the token; see grpc.ServerStream.
func (s *fencedStream) Context() context.Context { return s.ctx }

// RecvMsg receives a message, or the end, that was admitted; see grpc.ServerStream. If it was not
// admitted, the handler should return the error.
func (s *fencedStream) RecvMsg(m any) error {
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over != nil {
		return over
	}
	received := s.ServerStream.RecvMsg(m)
	if received != nil && !errors.Is(received, io.EOF) {
		return received
	}
	election, token, ok := TokenFrom(s.ctx)
	if !ok {
		return received // it may pass without a token
	}
	err := s.fence.Admit(s.ctx, election, token)
	if err == nil {
		return received
	}
	err = statusOf(s.ctx, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = err
	return err
}

// statusOf returns the error that a caller receives.
func statusOf(ctx context.Context, err error) error {
	var refused *RefusedError
	switch {
	case errors.Is(err, errStore): // whatever it wraps
		if gone := ctx.Err(); gone != nil {
			return status.FromContextError(gone).Err()
		}
		return status.Error(codes.Unavailable, unsure)
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, eldest.ErrInvalid):
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return err
}
