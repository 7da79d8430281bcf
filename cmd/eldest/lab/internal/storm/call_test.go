package storm_test

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/service"
	"github.com/eldest-io/eldest/cmd/eldest/lab/witness"
	"github.com/eldest-io/eldest/curator"
)

// call is one call of a client, and how it ended.
type call struct {
	id     string
	greedy bool
	// late: the client may read the answer long after it has arrived.
	late bool
	// kind is the kind of call, node the node that it was connected to, "" if none.
	kind, node string
	begin, at  time.Time
	// limit is how long it could have waited: until its deadline, or a node's maximum wait.
	limit time.Duration
	code  codes.Code
	text  string
	// lost: the answer has a LostLeadership; nothing: that has nothing_applied.
	lost, nothing bool
	// acknowledged is the number of writes that a stream acknowledged before it ended.
	acknowledged int
}

// of returns the context of a call, with the call's id and deadline.
func of(ctx context.Context, c *call, limit time.Duration) (context.Context, context.CancelFunc) {
	c.begin, c.limit = time.Now(), min(limit, curator.DefaultWait)
	return context.WithTimeout(metadata.AppendToOutgoingContext(ctx, witness.CallKey, c.id), limit)
}

// ended fills in the response to the caller.
func (c *call) ended(err error) {
	c.at = time.Now()
	c.code, c.text = status.Code(err), status.Convert(err).Message()
	detail, lost := curator.LostLeadership(err, service.Election)
	c.lost, c.nothing = lost, detail.GetNothingApplied()
}

// slack is how much earlier than its limit a call may end.
const slack = 100 * time.Millisecond

// class returns the class of a call's result, for the counts, or in wrong the guarantee that was
// broken. begun is how often a handler received the call.
//
// A call could have waited, and was refused instead, if
//   - it ended UNAVAILABLE with nothing_applied,
//   - no handler received it (a handler may return that itself, and its call cannot be sent a
//     second time),
//   - the node that answered was not stopping, and
//   - neither its deadline nor a node's maximum wait had passed.
func (c *call) class(begun int, at outage) (class, wrong string) {
	switch {
	case begun > 1:
		return "", "begun more than once"
	case c.nothing && c.acknowledged > 0:
		return "", "acknowledged in parts, and told that nothing was applied"
	case c.code == codes.OK && begun == 0:
		return "", "answered, and no handler was given it"
	}
	switch c.code {
	case codes.OK:
		return "done", ""
	case codes.NotFound:
		return "done", "" // only reads and deletions
	case codes.InvalidArgument, codes.Canceled:
		if c.greedy {
			return "done", "" // too large, or cancelled
		}
	case codes.DeadlineExceeded:
		return "deadline passed", ""
	case codes.Unknown:
		return "outcome unknown, by the service", ""
	case codes.ResourceExhausted:
		switch {
		case c.greedy:
			return "shed", ""
		default:
			return "", "shed, though its caller is modest"
		}
	case codes.Unavailable:
		switch {
		case !c.lost && at.away:
			return "cut: its node went away", ""
		case at.leaving:
			return "refused by a node that stops", ""
		case !c.lost:
			return "", "no LostLeadership, and its node was there"
		case begun > 0 && c.nothing:
			return "begun, and refused by the guard", ""
		case begun > 0:
			return "begun, and leadership was lost", ""
		case !c.nothing && !at.died:
			return "", "not begun, and of unknown outcome, though no node died"
		case !c.nothing:
			return "in flight to a leader that was lost", ""
		case c.at.Sub(c.begin) >= c.limit-slack:
			return "waited to its limit", ""
		default:
			return "", "could have waited"
		}
	}
	return "", "undocumented: " + c.code.String()
}
