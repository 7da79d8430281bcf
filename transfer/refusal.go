package transfer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/eldest-io/eldest"
)

// Reason is the reason why a transfer, or one of its requests, is refused. Its text is stable.
type Reason string

const (
	// NoLeader means that the queue is empty.
	NoLeader Reason = "no-leader"
	// UnknownTarget means that no candidate has the target's key.
	UnknownTarget Reason = "unknown-target"
	// AlreadyLeads means that the target leads: there is nothing to do. The error also wraps
	// eldest.ErrLeading.
	AlreadyLeads Reason = "already-leads"
	// LeaderTakesNoPart means that the leader does not take part: it has no request key.
	LeaderTakesNoPart Reason = "leader-takes-no-part"
	// Between means that some candidates between the leader and the target do not take part.
	Between Reason = "between"
	// Behind means that some candidates behind the target do not take part, so that those that
	// requeue would be behind them. PassBy permits that.
	Behind Reason = "behind"
	// Outranked means that the target would yield to another candidate (Options.ShouldYield).
	Outranked Reason = "outranked"
	// Busy means that another transfer has a request to the same candidate.
	Busy Reason = "busy"
	// Declined means that the candidate did not accept the request.
	Declined Reason = "declined"
	// Changed means that the queue has changed: the leader, the target or the candidate with the
	// request has left or has another token, or another candidate is in between.
	Changed Reason = "changed"
	// NoAnswer means that the candidate does not answer the request. If the error wraps
	// eldest.ErrOutcomeUnknown it has taken the request and may still carry it out; otherwise the
	// request was withdrawn.
	NoAnswer Reason = "no-answer"
)

// Refusal is the error of a transfer that was refused. The leader continues to lead, unless the
// request to the leader has an unknown outcome. It wraps eldest.ErrTransferRefused.
type Refusal struct { //nolint:errname // an answer, as much as an error
	Reason Reason
	// Who are the candidates that are the reason, oldest first.
	Who []eldest.Candidate
	// Unknown means that the outcome is unknown; the error then wraps eldest.ErrOutcomeUnknown.
	Unknown bool
}

// Error returns the reason and the keys of the candidates.
func (r *Refusal) Error() string {
	why := map[Reason]string{
		NoLeader:          "no leader",
		UnknownTarget:     "the target is not a candidate",
		AlreadyLeads:      "the target leads already",
		LeaderTakesNoPart: "the leader does not take part in transfers",
		Between:           "candidates between the leader and the target do not take part in transfers",
		Behind:            "candidates behind the target do not take part in transfers and would overtake those that requeue (order pass-by permits that)",
		Outranked:         "the target would yield to a better candidate instead of leading",
		Busy:              "another transfer is in progress",
		Declined:          "the candidate declined the request",
		Changed:           "the queue has changed",
		NoAnswer:          "the candidate does not answer the request",
	}[r.Reason]
	if why == "" {
		why = string(r.Reason)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", eldest.ErrTransferRefused, why)
	if r.Unknown {
		b.WriteString(", and the request may still be carried out")
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

// Unwrap returns the sentinels of the reason.
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

// ErrOvertaken is returned by To when the leader has drained and another candidate than the target
// is the oldest after it, because the target left the queue or yielded.
var ErrOvertaken = errors.New("the leader has drained, and a candidate other than the target leads")
