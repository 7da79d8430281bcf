package kv

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
)

// answer turns the error of a guarded operation into an error that a gRPC handler returns.
//
// An error that means that the tenure is over is left to the curator, marked that nothing was
// applied: each method of this service is one transaction. Every other error gets a code. The error
// itself is kept inside, because a cancelled context has another meaning if the tenure has ended.
func answer(err error) error {
	unknown := errors.Is(err, eldest.ErrOutcomeUnknown)
	if !unknown && (errors.Is(err, eldest.ErrNotLeading) || errors.Is(err, eldest.ErrDeposed)) {
		return curator.NothingApplied(err)
	}
	code := codeOf(err)
	switch {
	case code == codes.Canceled || code == codes.DeadlineExceeded:
		// The caller's own end, or the tenure's; after both a write may have been applied.
	case unknown, code == codes.OK:
		// Any other code, above all UNAVAILABLE, would invite the caller to send the write again.
		code = codes.Unknown
	}
	return &failure{status: status.New(code, err.Error()), cause: err}
}

// codeOf reads the gRPC code of an error of etcd's client, in each of its forms.
func codeOf(err error) codes.Code {
	if code := status.FromContextError(err).Code(); code != codes.Unknown {
		return code
	}
	var etcd interface{ Code() codes.Code }
	if errors.As(err, &etcd) {
		return etcd.Code()
	}
	return status.Code(err)
}

// failure is a gRPC status that keeps the error from which it was made.
type failure struct {
	status *status.Status
	cause  error
}

// Error returns the cause's text.
func (f *failure) Error() string { return f.cause.Error() }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.cause }

// GRPCStatus returns what gRPC sends to the caller.
func (f *failure) GRPCStatus() *status.Status { return f.status }
