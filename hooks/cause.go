package hooks

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// cause is a reason that has a name.
type cause struct {
	err  error
	name string
}

// ends are the causes of the ends of candidacies, tenures and sessions, in the order in which they
// count: an error may wrap several, and a cause from outside explains more.
var ends = []cause{
	{eldest.ErrSessionLost, "session_lost"},
	{eldest.ErrDeposed, "deposed"},
	{eldest.ErrSuspended, "suspended"},
	{eldest.ErrResigned, "resigned"},
	{eldest.ErrDraining, "drained"},
	{eldest.ErrRequeued, "requeued"},
	{eldest.ErrWithdrawn, "withdrawn"},
	{eldest.ErrClosed, "closed"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "canceled"},
}

// other is the name of every other cause.
const other = "other"

// Causes lists what Cause returns.
func Causes() []string {
	var names []string
	for _, end := range ends {
		if len(names) == 0 || names[len(names)-1] != end.name {
			names = append(names, end.name)
		}
	}
	return append(names, other)
}

// Cause returns one word, one of Causes, for why a candidacy, a tenure or a session ended. The word
// is for labels and searches; the text of the error has the details.
func Cause(err error) string {
	for _, end := range ends {
		if errors.Is(err, end.err) {
			return end.name
		}
	}
	return other
}

// Asked reports whether this process requested the end that Cause names.
func Asked(err error) bool {
	switch Cause(err) {
	case "resigned", "drained", "requeued", "withdrawn", "closed":
		return true
	}
	return errors.Is(err, context.Canceled) && Cause(err) == "canceled"
}

// Trouble returns one word for why a renewal or a watch failed: "unresponsive" (the application
// stopped calling lease.Liveness.Alive), "no_answer" (etcd did not answer, or could not be reached),
// "refused" (etcd returned an error), or the word of Cause.
func Trouble(err error) string {
	switch name := Cause(err); {
	case errors.Is(err, eldest.ErrUnresponsive):
		return "unresponsive"
	case name != other && name != "canceled":
		return name
	case errors.Is(err, eldest.ErrUnavailable):
		return "no_answer"
	}
	switch rpcerr.Code(err) {
	case codes.OK, codes.Unknown:
		return other
	case codes.Unavailable, codes.DeadlineExceeded:
		return "no_answer"
	case codes.Canceled:
		return "canceled"
	default:
		return "refused"
	}
}
