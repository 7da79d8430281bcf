package eldest

import (
	"errors"
	"fmt"
	"strings"
)

// The sentinel errors; test for them with errors.Is. An error may wrap two of them, of which the
// second one is the reason (not leading: deposed). Sessions, candidates, observers and guards
// return them inside an *OpError, which names the operation that failed, its election and its key.
var (
	// ErrInvalid is returned for bad input, before anything is sent.
	ErrInvalid = errors.New("invalid input")
	// ErrNoLeader is returned by queries when the queue is empty.
	ErrNoLeader = errors.New("no leader")
	// ErrNotElected is returned by Try when an older candidate exists.
	ErrNotElected = errors.New("an older candidate exists")
	// ErrNotLeading is returned by operations that require leadership.
	ErrNotLeading = errors.New("not leading")
	// ErrNotRegistered is returned by operations that require a queued candidate.
	ErrNotRegistered = errors.New("not registered")
	// ErrDeposed is the end of a candidate or leader whose key another client deleted or replaced.
	// A guarded operation that detects this returns it too.
	ErrDeposed = errors.New("deposed: the key was deleted or belongs to another tenure")
	// ErrSessionLost is the end of a session whose lease expired, was revoked,
	// or could not be renewed before its deadline.
	ErrSessionLost = errors.New("session lost")
	// ErrResigned is the end of a tenure by the leader's own Resign.
	ErrResigned = errors.New("resigned")
	// ErrWithdrawn is the end of a campaign by the candidate's own Withdraw.
	ErrWithdrawn = errors.New("withdrawn")
	// ErrRequeued is the end of a position in the queue that the candidate gave up for a new one at
	// the end of the queue. Its campaign continues.
	ErrRequeued = errors.New("requeued: the candidate registers again at the end of the queue")
	// ErrDraining is the end of a tenure that was given up while its key still exists. No candidate
	// leads until the key is deleted.
	ErrDraining = errors.New("drained: leadership was given up, the key still exists")
	// ErrSuspended is the end of a tenure whose session has heartbeats, none of which etcd
	// acknowledged in time. The key remains, unless a successor has deleted it. Campaign again: the
	// candidate continues to lead with the same token, or the campaign returns that it was deposed.
	ErrSuspended = errors.New("suspended: no heartbeat was acknowledged in time")
	// ErrTransferRefused is returned for a transfer that is not possible as requested;
	// *transfer.Refusal has the reason. The leader continues to lead.
	ErrTransferRefused = errors.New("transfer refused")
	// ErrCampaigning is returned when a candidate already campaigns, or the session already has a
	// candidate in the election.
	ErrCampaigning = errors.New("already campaigning")
	// ErrLeading is returned for a campaign of a candidate that already leads.
	ErrLeading = errors.New("already leading")
	// ErrStuck is returned when a lead or standby function did not return although its context
	// had ended.
	ErrStuck = errors.New("the function did not return after its context ended")
	// ErrUnresponsive is the reason why a session with a liveness probe is not renewed or not
	// opened: the application has stopped calling lease.Liveness.Alive.
	ErrUnresponsive = errors.New("the application was unresponsive")
	// ErrClosed is returned by a handle after its Close.
	ErrClosed = errors.New("closed")
	// ErrOutcomeUnknown is returned when the reply to a request was lost: the request may or may
	// not have been applied.
	ErrOutcomeUnknown = errors.New("outcome unknown: the request may have been applied")
	// ErrForeignKey is returned for a key in an election's range that is not a candidate key.
	ErrForeignKey = errors.New("not a candidate key")
	// ErrForeignValue is returned when a candidate's value cannot be read because a program other
	// than Eldest wrote it in another format.
	ErrForeignValue = errors.New("the value is not in the expected format")
	// ErrUnavailable is the reason of an unknown state when etcd stopped responding.
	ErrUnavailable = errors.New("etcd does not answer")
)

// OpError names the operation that failed, its object and the cause. It is immutable.
type OpError struct {
	// Op is the operation as the API names it: "campaign", "resign", ...
	Op string
	// Election is the election's name; empty for operations without one (sessions).
	Election string
	// Key is the candidate's key; empty if it has none yet.
	Key string
	// Lease is the session's lease ID; 0 if it has none yet.
	Lease int64
	// Err is the cause, never nil.
	Err error
}

// Error returns all fields as one line, with names quoted so that control characters from outside
// cannot reach a terminal.
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

// quoted quotes a name and shortens it to most bytes. Valid names are never shortened; names from
// outside may be longer, and a log line must not be a megabyte long.
func quoted(name string) string {
	const most = 1100
	if len(name) > most {
		return fmt.Sprintf("%q… (%d bytes)", name[:most], len(name))
	}
	return fmt.Sprintf("%q", name)
}

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *OpError) Unwrap() error { return e.Err }
