package curator

import (
	"slices"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/eldest-io/eldest/curator/curatorpb"
)

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
// says. An error that has none of them is returned unchanged.
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

// anyLost drops all: a handler's error has only those that others have told the handler.
func anyLost(*curatorpb.LostLeadership) bool { return true }
