package connect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
)

// Code returns the gRPC code of an error; codes.OK if it has none. The client returns three kinds of
// errors: its own type, bare errors of the context, and raw statuses of the transport.
func Code(err error) codes.Code {
	var coded rpctypes.EtcdError
	raw, ok := status.FromError(err)
	switch {
	case errors.As(err, &coded):
		return coded.Code()
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case ok:
		return raw.Code()
	}
	return codes.OK
}

// Silent reports whether an error means that etcd was not reached, so that a retry may help.
func Silent(err error) bool {
	switch Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return true
	default:
		return errors.Is(err, context.Canceled)
	}
}

// Explain turns the failure of a request into the error of the command, with advice, and with the
// exit code of bad usage if that was the cause. ctx is the command's context: once it has ended,
// every failure is an interruption.
func (f *Flags) Explain(ctx context.Context, err error) error {
	var coded *cli.CodedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &coded):
		return err
	case ctx.Err() != nil:
		return cli.ErrInterrupted
	case errors.Is(err, eldest.ErrInvalid):
		return cli.Usagef("%s", Because(err))
	}
	return f.Advise(err)
}

// Advise adds what to do to the text of an error.
func (f *Flags) Advise(err error) error {
	text := Because(err)
	// From the special to the general: authentication comes before permissions.
	switch code := Code(err); {
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return cli.Advise(fmt.Errorf("%s: etcd requires a user", text), "use --user name:password")
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return cli.Advise(errors.New(text), "check --user and --password")
	case code == codes.PermissionDenied:
		return cli.Advise(errors.New(text), fmt.Sprintf("user %q needs a role with access to the election's keys "+
			"(write for campaign and evict, read for the rest)", f.User))
	case Silent(err):
		// The exact cause cannot be known here; what to check is known.
		where := "--endpoints (or ELDEST_ENDPOINTS)"
		if f.Explicit {
			where = "--endpoints"
		}
		return cli.Advise(fmt.Errorf("no answer from etcd at %s (%s)", f.addresses(), f.Why(err)),
			fmt.Sprintf("check that it is running, %s, and --cacert, --cert and --key if it uses TLS", where))
	}
	return errors.New(text)
}

// addresses renders the endpoints.
func (f *Flags) addresses() string { return cli.Printable(strings.Join(f.Endpoints, ",")) }

// Why returns why etcd did not answer: the fault of the connection is more useful than a timeout.
func (f *Flags) Why(err error) string {
	trouble, _ := f.trouble.Load().(string)
	if code := Code(err); trouble != "" && (code == codes.DeadlineExceeded || errors.Is(err, context.Canceled)) {
		return cli.Printable(trouble)
	}
	return Because(err)
}

// Because renders an error without the library's outer text about the operation: the command line has
// that already.
func Because(err error) string {
	for {
		op, ok := err.(*eldest.OpError) //nolint:errorlint // only outer layers are taken off
		if !ok {
			return cli.Printable(err.Error())
		}
		err = op.Err
	}
}
