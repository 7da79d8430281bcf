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

// refusal is an answer of a node in the service's place.
type refusal struct {
	reason   Refusal
	election string
	token    eldest.Token // of the tenure that ended, or that the call was forwarded for; 0: none
	node     string       // the node of that tenure; empty if there was none
	// untouched: it is certain that the request changed nothing.
	untouched bool
	code      codes.Code // 0: Unavailable
	why       string
}

// err returns the status. Its text states that the call can be retried, and its details have a
// curatorpb.LostLeadership.
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

// NothingApplied marks an error that a unary handler returns because leadership was lost: the
// request changed nothing, so the caller can send it again. Only the handler can decide this,
// because it may have written before it received the refusal that it returns. nil stays nil.
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

// classify returns the answer to a call whose handler returned err, not nil, in a tenure that ended
// for the reason lost, or has not ended (nil). lose makes the refusal.
//
// A refusal by the tenure's guard is UNAVAILABLE also in a tenure that has not ended here: the
// guard has read etcd, and the event that ends the tenure has not arrived yet. In a tenure that has
// ended, an error that looks like a cancelled context counts as the tenure's end, unless the
// caller's context has ended. Every other error is the handler's own answer, without the details of
// another curator for another request of the handler: the handler may have written before that
// request.
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

// refused reports whether the error means that this tenure is over: the refusal of its guard
// or of a fence, or its end.
func (t tenureID) refused(err error) bool {
	return !t.another(err) &&
		(errors.Is(err, eldest.ErrDeposed) || errors.Is(err, eldest.ErrNotLeading) || errors.Is(err, eldest.ErrSessionLost))
}

// another reports whether the error names a tenure other than this one. A handler may use other
// elections, and a service may be fenced by the tenures of its callers.
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

// LostLeadership returns the detail that a curator of this election has added to the error that
// answers a call, and whether there is one. Clients decide by its NothingApplied whether a request
// can be sent again. election is that of the service that was called: a detail of another
// election's curator is about another request, and does not apply to this one. err may be anything,
// also nil. LostLeadership does not block.
func LostLeadership(err error, election string) (*curatorpb.LostLeadership, bool) {
	for _, detail := range status.Convert(err).Details() {
		if lost, ok := detail.(*curatorpb.LostLeadership); ok && lost.GetElection() == election {
			return lost, true
		}
	}
	return nil, false
}

// withoutLost returns the error without the curatorpb.LostLeadership details for which drop returns
// true. An error that has none of them is returned unchanged.
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

// anyLost drops all details: a handler's error has only those of other curators.
func anyLost(*curatorpb.LostLeadership) bool { return true }

// text makes valid UTF-8 of a string that a codec of the user, or etcd, has returned: one invalid
// byte would make the whole message impossible to send.
func text(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
