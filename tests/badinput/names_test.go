package badinput

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
)

// preface is what the table begins with.
const preface = `# Bad input: what was tried, what came back

Made by ` + "`go test ./tests/badinput -update`" + `, which tries all of it on real etcd and fails where this page says something else.
Every error is checked by ` + "`errors.Is`" + ` for what stands before the colon, and its text for the operation, the election and the
key. Unless a row says how much, nothing was sent. Nothing was changed: etcd's revision is what it was before, but for what the
row itself says. ` + "`<n>`, `<id>` and `<address>`" + ` stand for what differs from run to run.
`

// named are the errors that rows want, by the names under which a user knows them.
var named = []struct {
	err  error
	name string
}{
	{eldest.ErrInvalid, "ErrInvalid"},
	{eldest.ErrNoLeader, "ErrNoLeader"},
	{eldest.ErrNotElected, "ErrNotElected"},
	{eldest.ErrNotLeading, "ErrNotLeading"},
	{eldest.ErrNotRegistered, "ErrNotRegistered"},
	{eldest.ErrDeposed, "ErrDeposed"},
	{eldest.ErrSessionLost, "ErrSessionLost"},
	{eldest.ErrResigned, "ErrResigned"},
	{eldest.ErrWithdrawn, "ErrWithdrawn"},
	{eldest.ErrCampaigning, "ErrCampaigning"},
	{eldest.ErrLeading, "ErrLeading"},
	{eldest.ErrClosed, "ErrClosed"},
	{eldest.ErrOutcomeUnknown, "ErrOutcomeUnknown"},
	{eldest.ErrForeignKey, "ErrForeignKey"},
	{eldest.ErrForeignValue, "ErrForeignValue"},
	{context.Canceled, "context.Canceled"},
	{context.DeadlineExceeded, "context.DeadlineExceeded"},
	{rpctypes.ErrEmptyKey, "etcd's ErrEmptyKey"},
	{rpctypes.ErrDuplicateKey, "etcd's ErrDuplicateKey"},
	{rpctypes.ErrTooManyOps, "etcd's ErrTooManyOps"},
	{rpctypes.ErrRequestTooLarge, "etcd's ErrRequestTooLarge"},
	{rpctypes.ErrLeaseNotFound, "etcd's ErrLeaseNotFound"},
	{rpctypes.ErrFutureRev, "etcd's ErrFutureRev"},
	{rpctypes.ErrPermissionDenied, "etcd's ErrPermissionDenied"},
	{rpctypes.ErrNoSpace, "etcd's ErrNoSpace"},
}

// names returns the names of errors.
func names(errs []error) (all []string) {
	for _, err := range errs {
		name := fmt.Sprintf("%v", err)
		for _, n := range named {
			if n.err == err { //nolint:errorlint // the sentinel itself
				name = n.name
			}
		}
		if code, ok := err.(coded); ok { //nolint:errorlint // the row's own
			name = code.String()
		}
		all = append(all, "**"+name+"**")
	}
	return all
}

// coded is a gRPC code as an error that a row can want.
type coded codes.Code

func (c coded) Error() string { return c.String() }

func (c coded) String() string { return codes.Code(c).String() }

// answered is the answer to a call, for which errors.Is finds its code.
type answered struct{ error }

func (a answered) Is(target error) bool {
	code, ok := target.(coded)
	return ok && status.Code(a.error) == codes.Code(code)
}

func (a answered) Unwrap() error { return a.error }

// answer makes the end of a call one.
func answer(err error) error {
	if err == nil {
		return nil
	}
	return answered{err}
}
