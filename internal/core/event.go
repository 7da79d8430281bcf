package core

import "github.com/eldest-io/eldest"

// Kind is a kind of event.
type Kind uint8

// The events. Each request is answered by exactly one of Registered, Looked, Surveyed, Deleted,
// Refused, Undone and Unanswered, unless a later request has replaced it (only reads are replaced)
// or the session has ended.
const (
	// Campaign: the user wants the leadership. Event.Want specifies how.
	Campaign Kind = iota
	// Leave: the user wants no key (withdraw, resign, close, the end of a context). Event.Err is
	// the cause. Event.Token, if positive, is a key that the user knows and the candidate does not.
	Leave
	// Keep: the user has found a key with Event.Token, which existed at Event.Revision, and does
	// not lead with it. Or the key was to be deleted, the user does not know whether it is, and
	// wants no more requests.
	Keep
	// Requeue: the user wants to wait at the end of the queue.
	Requeue
	// Drain: the user gives the leadership up and keeps the key. Event.Err is the cause.
	Drain
	// Registered: the key exists, with Event.Token. Event.Position is its place; if it has no
	// elders and is not complete, the place is unknown.
	Registered
	// Looked: at Event.Position the key had Event.Token; 0: no key was bound to our lease.
	Looked
	// Surveyed: at Event.Position, which has no elders, the key had Event.Token. Event.Yield is
	// true if the user wants another candidate to lead.
	Surveyed
	// Deleted: at Event.Revision the life of the key that the request named did not exist.
	Deleted
	// Refused: etcd refused the request permanently, and did nothing, unless Event.Err, the reason,
	// wraps eldest.ErrOutcomeUnknown.
	Refused
	// Undone: the request was not carried out, and may succeed when it is sent again.
	Undone
	// Unanswered: the outcome of the request is unknown.
	Unanswered
	// Due: the pause after a failure is over.
	Due
	// ElderDeleted: the watched older key was deleted at Event.Revision.
	ElderDeleted
	// KeyDeleted: the candidate's key was deleted at Event.Revision, but not by the candidate.
	KeyDeleted
	// KeyUnsafe: the candidate's key exists, but cannot be relied on: it cannot be watched, or is
	// not bound to the lease any more. Event.Err is the reason.
	KeyUnsafe
	// KeyAppeared: a key with Event.Token was found although the candidate has given up: a
	// registration was carried out late.
	KeyAppeared
	// Suspend: the session's heartbeats cannot be relied on now. Event.Err is the reason. The key
	// stays.
	Suspend
	// SessionEnded: the lease cannot be relied on any more. Event.Err is the reason.
	SessionEnded

	kinds
)

// String returns the name.
func (k Kind) String() string {
	return [kinds]string{
		"Campaign", "Leave", "Keep", "Requeue", "Drain", "Registered", "Looked", "Surveyed", "Deleted", "Refused", "Undone", "Unanswered", "Due",
		"ElderDeleted", "KeyDeleted", "KeyUnsafe", "KeyAppeared", "Suspend", "SessionEnded",
	}[k]
}

// Event is what a candidate receives. The fields that its Kind does not name are zero.
type Event struct {
	Kind     Kind
	Want     Want
	Token    eldest.Token
	Position Position
	Revision int64
	Yield    bool
	Err      error
}
