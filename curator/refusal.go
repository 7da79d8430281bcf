package curator

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/curatorpb"
)

// refusal is an answer in the place of the service's: UNAVAILABLE, or another code, with what
// is known of whose fault it is not.
type refusal struct {
	election string
	token    eldest.Token // of the tenure that ended, or was asked for; 0: none
	node     string       // whose tenure it was; empty if there was none
	// untouched says that it is certain that nothing was changed by the request.
	untouched bool
	code      codes.Code // 0: Unavailable
	why       string
}

// err returns the status, with a text that says that the call can be retried and a
// curatorpb.LostLeadership in its details.
func (r refusal) err() error {
	st := status.New(cmp.Or(r.code, codes.Unavailable), text(fmt.Sprintf("eldest: election %q: %s; the request can be retried", r.election, r.why)))
	detailed, err := st.WithDetails(&curatorpb.LostLeadership{
		Election: r.election, Token: int64(r.token), NodeId: text(r.node), NothingApplied: r.untouched,
	})
	if err != nil {
		return st.Err()
	}
	return detailed.Err()
}

// NothingApplied says of an error that a unary handler returns because leadership was
// lost, that its request changed nothing: so that the caller is told so, and can send it
// again without a thought. Only the handler can know: it may have written before it met the
// refusal that it returns. nil stays nil.
func NothingApplied(err error) error {
	if err == nil {
		return nil
	}
	return nothingAppliedError{err}
}

type nothingAppliedError struct{ error }

func (e nothingAppliedError) Unwrap() error { return e.error }

// judge says what a caller is told when a handler returned err, not nil, in a tenure
// that ended for the reason lost, or has not ended (nil). lose makes the refusal.
//
// A refusal by the tenure's guard is UNAVAILABLE also in a tenure that has not ended
// here: the guard asked etcd, and news of the end is on its way. What looks like a
// cancelled context is, in a tenure that has ended, the tenure's end, unless the caller
// itself went away. All else is the handler's own answer, without what another curator
// told the handler of another request: the handler may have written before that one.
func (t *tenure) judge(caller context.Context, err, lost error, lose func(untouched bool) error) error {
	if t.refused(err) {
		var nothing nothingAppliedError
		return lose(errors.As(err, &nothing) && !errors.Is(err, eldest.ErrOutcomeUnknown))
	}
	if lost == nil || !t.cancelled(err, lost) {
		return withoutLost(err, anyLost)
	}
	if gone := caller.Err(); gone != nil {
		return status.FromContextError(gone).Err()
	}
	return lose(false)
}

// refused reports whether the error says that this tenure is over: the refusal of its guard
// or of a fence, or its end.
func (t *tenure) refused(err error) bool {
	return !t.another(err) &&
		(errors.Is(err, eldest.ErrDeposed) || errors.Is(err, eldest.ErrNotLeading) || errors.Is(err, eldest.ErrSessionLost))
}

// another reports whether the error names another tenure than this one. A handler may have to
// do with other elections, and a service may be fenced for those of its callers.
func (t *tenure) another(err error) bool {
	var refused interface{ Tenure() (string, eldest.Token) } // of a guard, or of a fence
	var op *eldest.OpError
	if errors.As(err, &refused) {
		election, token := refused.Tenure()
		return election != t.election || token != t.token
	}
	return errors.As(err, &op) && op.Election != "" && op.Election != t.election
}

// cancelled reports whether the error is what the end of a context looks like: one
// that ended because of lost.
func (t *tenure) cancelled(err, lost error) bool {
	return errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled || errors.Is(err, lost) && !t.another(err)
}
