package eldest

import (
	"errors"
	"fmt"
	"strings"
)

// The sentinel errors; test for them with errors.Is. An error may wrap two of them:
// what was refused, and why (not leading: deposed). Sessions, candidates, observers
// and guards return them inside an *OpError that says which operation on which
// election and key failed.
var (
	// ErrInvalid is returned for bad input, before anything is sent.
	ErrInvalid = errors.New("invalid input")
	// ErrNoLeader is returned by queries when the queue is empty.
	ErrNoLeader = errors.New("nobody leads")
	// ErrNotElected is returned by Try when somebody older stands.
	ErrNotElected = errors.New("an older candidate stands")
	// ErrNotLeading is returned by what only a leader may do.
	ErrNotLeading = errors.New("not leading")
	// ErrNotRegistered is returned by what only a queued candidate may do.
	ErrNotRegistered = errors.New("not registered")
	// ErrDeposed is the end of a candidate or leader whose key was removed or
	// replaced by somebody else, and of a guarded operation that found it so.
	ErrDeposed = errors.New("deposed: the key is gone or belongs to another tenure")
	// ErrSessionLost is the end of a session whose lease expired, was revoked,
	// or could not be renewed before its deadline.
	ErrSessionLost = errors.New("session lost")
	// ErrResigned is the end of a tenure by the leader's own Resign.
	ErrResigned = errors.New("resigned")
	// ErrWithdrawn is the end of a campaign by the candidate's own Withdraw.
	ErrWithdrawn = errors.New("withdrawn")
	// ErrRequeued is the end of one place in the queue that the candidate gave up for
	// a new one at the end of it; its campaign goes on.
	ErrRequeued = errors.New("requeued: entered the queue anew")
	// ErrDraining is the end of a tenure that was given up while the key still stands, so
	// that nobody leads until the key goes.
	ErrDraining = errors.New("drained: leadership was given up, the key still stands")
	// ErrSuspended is the end of a tenure whose session has heartbeats, none of which etcd
	// acknowledged in time. The key stands, unless a successor has deleted it: campaign again,
	// and the candidate leads on with the same token, or learns that it was deposed.
	ErrSuspended = errors.New("suspended: no heartbeat was acknowledged in time")
	// ErrTransferRefused is returned for a transfer that cannot be had as it was asked
	// for; *transfer.Refusal says why. Whoever led leads on.
	ErrTransferRefused = errors.New("transfer refused")
	// ErrCampaigning is returned when a candidate already has a campaign going,
	// or the session already has a candidate in the election.
	ErrCampaigning = errors.New("already campaigning")
	// ErrLeading is returned for a campaign of a candidate that leads.
	ErrLeading = errors.New("already leading")
	// ErrStuck is returned when a lead function did not return although its context
	// had ended.
	ErrStuck = errors.New("the lead function ignores the end of its context")
	// ErrUnresponsive is why a session with a pulse is not renewed or not opened: the
	// application has stopped beating.
	ErrUnresponsive = errors.New("the application has given no sign of life")
	// ErrClosed is returned by a handle after its Close.
	ErrClosed = errors.New("closed")
	// ErrOutcomeUnknown is returned when a request may or may not have been
	// carried out: its reply was lost.
	ErrOutcomeUnknown = errors.New("outcome unknown: the request may have been applied")
	// ErrForeignKey is returned when a key in an election's range is not a
	// candidate's.
	ErrForeignKey = errors.New("not a candidate key")
	// ErrForeignValue is returned when a candidate's value cannot be read: it was
	// written by a program that puts something else there.
	ErrForeignValue = errors.New("the value is not one of ours")
	// ErrUnavailable is the reason of an unknown state when etcd stopped answering.
	ErrUnavailable = errors.New("etcd does not answer")
)

// OpError says which operation failed, on what, and why. It is immutable.
type OpError struct {
	// Op is the operation in the words of the API: "campaign", "resign", ...
	Op string
	// Election is the election's name; empty where there is none (sessions).
	Election string
	// Key is the candidate's key; empty where there is none yet.
	Key string
	// Lease is the session's lease ID; 0 where there is none yet.
	Lease int64
	// Err is the cause, never nil.
	Err error
}

// Error renders all that is known, with names quoted so that control characters
// from outside cannot reach a terminal.
func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString("eldest: ")
	b.WriteString(e.Op)
	if e.Election != "" {
		fmt.Fprintf(&b, " election %s", quoted(e.Election))
	}
	if e.Key != "" {
		fmt.Fprintf(&b, " key %s", quoted(e.Key))
	}
	if e.Lease != 0 {
		fmt.Fprintf(&b, " lease %x", e.Lease)
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	return b.String()
}

// quoted quotes a name. No valid one is longer than what is shown of it; the others
// come from outside, and nobody wants a log line of a megabyte.
func quoted(name string) string {
	const most = 1100
	if len(name) > most {
		return fmt.Sprintf("%q… (%d bytes)", name[:most], len(name))
	}
	return fmt.Sprintf("%q", name)
}

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *OpError) Unwrap() error { return e.Err }
