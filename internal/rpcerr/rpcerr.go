package rpcerr

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Code returns the gRPC code behind an error of the etcd client.
func Code(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	switch {
	case err == nil:
		return codes.OK
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	}
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Code()
	}
	return codes.Unknown
}

// Is reports whether err is the given error of rpctypes, in either of the two forms in which the
// client returns it: converted, or as a raw gRPC status. It may be wrapped.
func Is(err, target error) bool {
	if errors.Is(err, target) {
		return true
	}
	known, ok := etcds(err)
	return ok && errors.Is(known, target)
}

// etcds returns the error of rpctypes that err is. ok is false if err is none of them: then it may
// come from a proxy, a balancer or gRPC itself.
func etcds(err error) (known rpctypes.EtcdError, ok bool) {
	if errors.As(err, &known) {
		return known, true
	}
	// The status itself is converted: the status of a wrapped error has the whole text as its
	// message, which rpctypes does not recognise.
	var s interface{ GRPCStatus() *status.Status }
	ok = errors.As(err, &s) && errors.As(rpctypes.Error(s.GRPCStatus().Err()), &known)
	return known, ok
}

// Restore returns the error of rpctypes whose text err has, or err itself. The reason for which a
// server cancels a watch, such as a missing permission, arrives only as the text of a gRPC error.
func Restore(err error) error {
	if err == nil || Code(err) != codes.Unknown {
		return err
	}
	if _, desc, ok := strings.Cut(err.Error(), " desc = "); ok {
		if known := rpctypes.Error(errors.New(desc)); Code(known) != codes.Unknown {
			return known
		}
	}
	return err
}

// Permanent reports whether repeating the request cannot help, because etcd has refused it
// permanently, or this client does not send it. It is false for nil and for the error of a closed
// client (see ClientClosed).
func Permanent(err error) bool {
	_, known := etcds(err)
	return Refused(err) && (known || unsent(err))
}

// Refused reports whether err has the code of a permanent refusal. The refusal need not be etcd's:
// a balancer may answer 403 or 404 while its configuration changes, which gRPC turns into
// PermissionDenied and Unimplemented. So it is final only if it is Permanent, or repeated (see
// package retryrpc).
//
// Invariant: if only this member refuses, and other members would not, it is no such refusal. The
// next attempt goes to the next endpoint.
func Refused(err error) bool {
	switch Code(err) {
	case codes.InvalidArgument:
		// The server returns this if its auth store has changed since the client's token was made;
		// the client then fetches a new token.
		return !Is(err, rpctypes.ErrAuthOldRevision)
	case codes.Unauthenticated:
		return !Is(err, rpctypes.ErrInvalidAuthToken)
	case codes.ResourceExhausted:
		return !Is(err, rpctypes.ErrTooManyRequests)
	case codes.FailedPrecondition:
		// A learner serves no watches and no renewals. It soon becomes a voter, and the client may
		// have its endpoint among others; etcd's client tries those by itself for unary calls only.
		return !Is(err, errLearner)
	case codes.PermissionDenied, codes.NotFound, codes.AlreadyExists, codes.OutOfRange, codes.Unimplemented:
		return true
	default:
		return false
	}
}

// errLearner is the only refusal that rpctypes has in its raw form only.
var errLearner = rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)

// Definite reports whether the request was certainly not carried out: etcd checked it, and it was
// refused, or it was not sent. Time-outs, resets, a change of the etcd leader, a stopping
// server and refusals that are not etcd's leave the outcome unknown.
func Definite(err error) bool {
	known, ok := etcds(err)
	if !ok {
		return unsent(err)
	}
	switch known.Code() {
	case codes.ResourceExhausted:
		// Not ErrNoSpace: the request that oversteps the quota is applied and then
		// refused.
		return Is(err, rpctypes.ErrTooManyRequests)
	case codes.InvalidArgument, codes.Unauthenticated, codes.PermissionDenied,
		codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented:
		return true
	case codes.Unavailable:
		// Refused by the interceptor, before it reaches consensus.
		return Is(err, rpctypes.ErrNoLeader)
	default:
		return false
	}
}

// unsent reports whether the client's own gRPC refused to send a message because of its size. gRPC
// marks that only by the text.
func unsent(err error) bool {
	return Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "trying to send message larger")
}

// ClientClosed reports whether err, of a request through client under ctx, comes from a client that
// was closed. The client's context decides, if it has one. For other clients a cancellation that
// ctx does not explain counts. (A server or a proxy may cancel as well.)
func ClientClosed(ctx context.Context, client any, err error) bool {
	if life(client) != nil {
		return err != nil && Closed(client)
	}
	return err != nil && ctx.Err() == nil && Code(err) == codes.Canceled
}

// Closed reports whether a client's context has ended, which for a *clientv3.Client means that it
// was closed. The error of a request does not always show that: etcd's client repeats requests that
// may be repeated, and treats the end of its own connection as one more reason to do so, until the
// request's context ends.
func Closed(client any) bool {
	ends := life(client)
	return ends != nil && ends.Err() != nil
}

// life returns the context that ends when the client is closed; nil if the client has none. A
// *clientv3.Client has none if the program has made it from a KV, a Watcher and a Lease.
func life(client any) context.Context {
	if c, ok := client.(interface{ Ctx() context.Context }); ok {
		return c.Ctx()
	}
	return nil
}

// Compacted reports whether err says that the requested revision was compacted.
func Compacted(err error) bool { return Is(err, rpctypes.ErrCompacted) }

// Future reports whether err says that the member has not reached the requested revision yet.
func Future(err error) bool { return Is(err, rpctypes.ErrFutureRev) }

// Opaque returns an error with the text of err, which wraps for errors.Is what err wraps. gRPC and
// etcd's client see no status in it. They would treat that of a wrapped error as the error's own:
// gRPC fails even calls that wait, and etcd's client repeats a request.
func Opaque(err error) error { return opaqueError{err} }

type opaqueError struct{ reason error }

// Error returns the text.
func (o opaqueError) Error() string { return o.reason.Error() }

// Is makes errors.Is search the wrapped error.
func (o opaqueError) Is(target error) bool { return errors.Is(o.reason, target) }
