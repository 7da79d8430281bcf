package curator

import (
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator/curatorpb"
)

// LostLeadership returns what a curator put into the details of an error that a call was
// answered with, and whether there was any: for clients, who decide by NothingApplied
// whether a request can be sent again without a thought. err may be anything, also nil.
func LostLeadership(err error) (*curatorpb.LostLeadership, bool) {
	for _, detail := range status.Convert(err).Details() {
		if lost, ok := detail.(*curatorpb.LostLeadership); ok {
			return lost, true
		}
	}
	return nil, false
}
