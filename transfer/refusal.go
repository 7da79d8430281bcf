package transfer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/eldest-io/eldest"
)

// Reason is why a transfer, or one request of it, is refused. Its text is stable.
type Reason string

const (
	// NoLeader says that nobody stands.
	NoLeader Reason = "no-leader"
	// UnknownTarget says that nobody stands with the target's key.
	UnknownTarget Reason = "unknown-target"
	// AlreadyLeads says that the target leads: there is nothing to do. The error wraps
	// eldest.ErrLeading, too.
	AlreadyLeads Reason = "already-leads"
	// LeaderDeaf says that the leader does not take part: it has no mailbox.
	LeaderDeaf Reason = "leader-takes-no-part"
	// Between says that some who stand between the leader and the target do not take part.
	Between Reason = "between"
	// Behind says that some who stand behind the target do not take part, so that those
	// who requeue would fall behind them. PassBy has them do so.
	Behind Reason = "behind"
	// Outranked says that the target would yield to somebody else who stands
	// (Options.ShouldYield).
	Outranked Reason = "outranked"
	// Busy says that somebody else is asking the same candidate for something.
	Busy Reason = "busy"
	// Declined says that the candidate which was asked does not want to.
	Declined Reason = "declined"
	// Changed says that the queue is not what it was: the leader, the target or the one
	// that was asked is gone or in another life, or somebody stands in between.
	Changed Reason = "changed"
	// Silent says that the candidate which was asked does not answer. If the error wraps
	// eldest.ErrOutcomeUnknown it has taken the request, and may yet obey; else the
	// request was taken back.
	Silent Reason = "silent"
)

// Refusal is why a transfer was refused. While it is one, whoever led leads on, but for
// one of the leader with an unknown outcome. It wraps eldest.ErrTransferRefused.
type Refusal struct { //nolint:errname // an answer, as much as an error
	Reason Reason
	// Who are the candidates that it is about, oldest first.
	Who []eldest.Candidate
	// Unknown says that the outcome is; the error then wraps eldest.ErrOutcomeUnknown.
	Unknown bool
}

// Error says why, and names the keys it is about.
func (r *Refusal) Error() string {
	why := map[Reason]string{
		NoLeader:      "nobody leads",
		UnknownTarget: "the target does not stand",
		AlreadyLeads:  "the target leads already",
		LeaderDeaf:    "the leader does not take part in transfers",
		Between:       "candidates between the leader and the target do not take part in transfers",
		Behind:        "candidates behind the target do not take part in transfers and would pass those who requeue (order pass-by lets them)",
		Outranked:     "a better candidate stands, to which the target would yield instead of leading",
		Busy:          "another transfer is going on",
		Declined:      "the candidate that was asked declines",
		Changed:       "the queue has changed",
		Silent:        "the candidate that was asked does not answer",
	}[r.Reason]
	if why == "" {
		why = string(r.Reason)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", eldest.ErrTransferRefused, why)
	if r.Unknown {
		b.WriteString(", and may yet do what it was asked for")
	}
	for i, c := range r.Who {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%q", sep, c.Key)
	}
	return b.String()
}

// Unwrap returns the sentinels that it stands for.
func (r *Refusal) Unwrap() []error {
	errs := []error{eldest.ErrTransferRefused}
	switch r.Reason {
	case NoLeader:
		errs = append(errs, eldest.ErrNoLeader)
	case UnknownTarget:
		errs = append(errs, eldest.ErrNotRegistered)
	case AlreadyLeads:
		errs = append(errs, eldest.ErrLeading)
	}
	if r.Unknown {
		errs = append(errs, eldest.ErrOutcomeUnknown)
	}
	return errs
}

// ErrOvertaken is returned by To when the leader has drained and somebody other than the
// target is the oldest after it, because the target left the queue or yielded.
var ErrOvertaken = errors.New("the leader has drained, and somebody other than the target leads")
