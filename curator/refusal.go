package curator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/curatorpb"
)

// refusal is an answer in the place of the service's.
type refusal struct {
	reason   Refusal
	election string
	token    eldest.Token // of the tenure that ended, or was asked for; 0: none
	node     string       // whose tenure it was; empty if there was none
	// untouched: it is certain that nothing was changed by the request.
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
	if err == nil {
		st = detailed
	}
	return refused(r.reason, st.Err())
}

// refusedError is the answer of a node in the service's place, with the reason.
type refusedError struct {
	error
	reason Refusal
}

// refused adds the reason to an answer; nil and a reason of 0 change nothing.
func refused(reason Refusal, err error) error {
	if err == nil || reason == 0 {
		return err
	}
	return &refusedError{err, reason}
}

// Unwrap returns the answer without the reason.
func (e *refusedError) Unwrap() error { return e.error }

// GRPCStatus returns the answer's status, which gRPC sends.
func (e *refusedError) GRPCStatus() *status.Status { return status.Convert(e.error) }

// refusedByLeader adds the reason that the leader gave in its trailer. The last one counts: the
// leader's curator writes after its service.
func refusedByLeader(trailer []string, err error) error {
	if len(trailer) == 0 {
		return err
	}
	return refused(refusalOf(trailer[len(trailer)-1]), err)
}

// NothingApplied marks an error that a unary handler returns because leadership was
// lost: its request changed nothing, so the caller can send it again. Only the handler can
// know this: it may have written before it met the refusal that it returns. nil stays nil.
func NothingApplied(err error) error {
	if err == nil {
		return nil
	}
	return nothingAppliedError{err}
}

type nothingAppliedError struct{ error }

func (e nothingAppliedError) Unwrap() error { return e.error }

// tenureID names the tenure that an error may be about.
type tenureID struct {
	election string
	token    eldest.Token
}

// classify returns the answer of a call whose handler returned err, not nil, in a tenure
// that ended for the reason lost, or has not ended (nil). lose makes the refusal.
//
// A refusal by the tenure's guard is UNAVAILABLE also in a tenure that has not ended
// here: the guard asked etcd, and news of the end is on its way. What looks like a
// cancelled context is, in a tenure that has ended, the tenure's end, unless the caller
// itself went away. All else is the handler's own answer, without what another curator
// answered to another request of the handler: it may have written before that one.
func (t tenureID) classify(caller context.Context, err, lost error, lose func(untouched bool) error) error {
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
func (t tenureID) refused(err error) bool {
	return !t.another(err) &&
		(errors.Is(err, eldest.ErrDeposed) || errors.Is(err, eldest.ErrNotLeading) || errors.Is(err, eldest.ErrSessionLost))
}

// another reports whether the error names another tenure than this one. A handler may use
// other elections, and a service may be fenced for those of its callers.
func (t tenureID) another(err error) bool {
	var refused interface{ Tenure() (string, eldest.Token) } // of a guard, or of a fence
	var op *eldest.OpError
	if errors.As(err, &refused) {
		election, token := refused.Tenure()
		return election != t.election || token != t.token
	}
	return errors.As(err, &op) && op.Election != "" && op.Election != t.election
}

// cancelled reports whether the error looks like the end of a context that ended because of lost.
func (t tenureID) cancelled(err, lost error) bool {
	return errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled || errors.Is(err, lost) && !t.another(err)
}

// LostLeadership returns what a curator of this election put into the details of an error
// that a call was answered with, and whether there was any. Clients decide by its
// NothingApplied whether a request can be sent again. election is that of the service that was called:
// what another election's curator said of another request, and a service passed on, says nothing
// of this request. err may be anything, also nil. LostLeadership does not block.
func LostLeadership(err error, election string) (*curatorpb.LostLeadership, bool) {
	for _, detail := range status.Convert(err).Details() {
		if lost, ok := detail.(*curatorpb.LostLeadership); ok && lost.GetElection() == election {
			return lost, true
		}
	}
	return nil, false
}

// withoutLost returns the error without those curatorpb.LostLeadership details that drop
// accepts. An error that has none of them is returned unchanged.
func withoutLost(err error, drop func(*curatorpb.LostLeadership) bool) error {
	st, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	p := st.Proto() // a copy
	before := len(p.GetDetails())
	p.Details = slices.DeleteFunc(p.GetDetails(), func(detail *anypb.Any) bool {
		lost := &curatorpb.LostLeadership{}
		return detail.MessageIs(lost) && (proto.Unmarshal(detail.GetValue(), lost) != nil || drop(lost))
	})
	if len(p.GetDetails()) == before {
		return err
	}
	return status.FromProto(p).Err()
}

// anyLost drops all: a handler's error has only those of other curators.
func anyLost(*curatorpb.LostLeadership) bool { return true }

// text makes a message's text of what a codec of the user, or etcd, has returned: one
// byte that is not UTF-8 would make the whole message impossible to send.
func text(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
