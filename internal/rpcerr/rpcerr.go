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

// Is reports whether err is the given error of rpctypes, in either of the two
// forms in which the client hands it out: converted, or as a raw gRPC status. It
// may be wrapped.
func Is(err, target error) bool {
	if errors.Is(err, target) {
		return true
	}
	known, ok := etcds(err)
	return ok && errors.Is(known, target)
}

// etcds returns the error of rpctypes that err is; ok is false if it is none of them, and
// may come from a proxy, a balancer or gRPC itself.
func etcds(err error) (known rpctypes.EtcdError, ok bool) {
	if errors.As(err, &known) {
		return known, true
	}
	// Converted from the status itself: that of a wrapped error has the whole
	// text as its message, by which nothing is recognised.
	var s interface{ GRPCStatus() *status.Status }
	ok = errors.As(err, &s) && errors.As(rpctypes.Error(s.GRPCStatus().Err()), &known)
	return known, ok
}

// Restore returns the error that a text stands for, or err itself: the reason for
// which a server cancels a watch, such as a permission that is missing, reaches us
// as nothing but the text of a gRPC error.
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

// Permanent reports whether asking again cannot help, because etcd has refused for good, or
// this client would not send the request. A nil error is not permanent; a closed client is
// another matter (see ClientClosed).
func Permanent(err error) bool {
	_, known := etcds(err)
	return Refused(err) && (known || unsent(err))
}

// Refused reports whether err is a refusal for good by its code. It need not be etcd's: a
// balancer may answer 403 or 404 while it is being changed, which gRPC turns into
// PermissionDenied and Unimplemented. So it is final only if it is Permanent, or repeated
// (see package ask).
//
// Invariant: what only this member refuses, and others would not, is no such refusal. The
// next attempt goes to the next endpoint.
func Refused(err error) bool {
	switch Code(err) {
	case codes.InvalidArgument:
		// The server says so when its auth store has changed since the client's
		// token was made; the client then fetches a new token.
		return !Is(err, rpctypes.ErrAuthOldRevision)
	case codes.Unauthenticated:
		return !Is(err, rpctypes.ErrInvalidAuthToken)
	case codes.ResourceExhausted:
		return !Is(err, rpctypes.ErrTooManyRequests)
	case codes.FailedPrecondition:
		// A learner serves no watches and no renewals. It is a voter soon, and its endpoint
		// may stand among others; etcd's client tries those by itself for unary calls only.
		return !Is(err, errLearner)
	case codes.PermissionDenied, codes.NotFound, codes.AlreadyExists, codes.OutOfRange, codes.Unimplemented:
		return true
	default:
		return false
	}
}

// errLearner is the one refusal that rpctypes has in its raw form only.
var errLearner = rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)

// Definite reports whether the request was certainly not carried out: etcd looked at it and
// refused, or it was not sent. Time-outs, resets, a change of the etcd leader, a stopping
// server and refusals that are not etcd's leave that open.
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

// unsent reports whether the client's own gRPC refused to send a message for its
// size. gRPC has no other mark for that than the text.
func unsent(err error) bool {
	return Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "trying to send message larger")
}

// ClientClosed reports whether err, of a request through client under ctx, comes
// from a client that was closed. A client that can tell is believed; of others, a
// cancellation that ctx does not explain is taken for it. (A server or a proxy may
// cancel as well.)
func ClientClosed(ctx context.Context, client any, err error) bool {
	if life(client) != nil {
		return err != nil && Closed(client)
	}
	return err != nil && ctx.Err() == nil && Code(err) == codes.Canceled
}

// Closed reports whether a client says of itself that it was closed, as a
// *clientv3.Client does by its context. The error of a request does not always
// tell: etcd's client repeats what may be repeated, and takes the end of its own
// connection for one more reason to do so, until the request's context ends.
func Closed(client any) bool {
	ends := life(client)
	return ends != nil && ends.Err() != nil
}

// life returns the context that ends when the client is closed; nil where the client has
// none. A *clientv3.Client has none if the program has put it together from a KV, a Watcher
// and a Lease.
func life(client any) context.Context {
	if c, ok := client.(interface{ Ctx() context.Context }); ok {
		return c.Ctx()
	}
	return nil
}

// Compacted reports whether err says that the wanted history is gone.
func Compacted(err error) bool { return Is(err, rpctypes.ErrCompacted) }

// Future reports whether err says that the member has not reached the wanted
// revision yet.
func Future(err error) bool { return Is(err, rpctypes.ErrFutureRev) }
