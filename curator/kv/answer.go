package kv

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
)

// answer makes the error of a guarded operation one for a gRPC handler to return.
//
// What says that the tenure is over is the curator's to answer, who is told that nothing
// was done: each method of this service is one transaction. Everything else gets a code; the error itself stays inside, because
// a cancelled context means something else when it was the tenure that ended.
func answer(err error) error {
	unknown := errors.Is(err, eldest.ErrOutcomeUnknown)
	if !unknown && (errors.Is(err, eldest.ErrNotLeading) || errors.Is(err, eldest.ErrDeposed)) {
		return curator.NothingApplied(err)
	}
	code := codeOf(err)
	switch {
	case code == codes.Canceled || code == codes.DeadlineExceeded:
		// The caller's own doing, or the tenure's end; both leave a write open.
	case unknown, code == codes.OK:
		// Whatever made it so, above all UNAVAILABLE, invites to send it once more.
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

// failure is a gRPC status that keeps the error that it was made of.
type failure struct {
	status *status.Status
	cause  error
}

// Error returns the cause's text.
func (f *failure) Error() string { return f.cause.Error() }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.cause }

// GRPCStatus is what gRPC sends to the caller.
func (f *failure) GRPCStatus() *status.Status { return f.status }
