package core

import (
	"iter"

	"github.com/eldest-io/eldest"
)

// Kind is a kind of event.
type Kind uint8

// The events. Each request that was sent is answered by exactly one of Registered, Looked,
// Surveyed, Deleted, Refused, Undone and Unanswered, unless a later request has replaced it (only
// reads are ever replaced) or the session has ended.
const (
	// Campaign: the user wants the leadership. Event.Want says how.
	Campaign Kind = iota
	// Leave: the user wants no key (withdraw, resign, close, the end of a context).
	// Event.Err is the cause. Event.Token, if positive, is a key that the user knows of, where
	// the candidate knows none.
	Leave
	// Keep: the user says that there is a key with Event.Token, which was there at
	// Event.Revision, and does not lead with it. Or it was to be deleted, the user does not
	// know whether it is, and asks no more.
	Keep
	// Requeue: the user wants to wait at the end of the queue.
	Requeue
	// Drain: the user gives the leadership up and keeps the key. Event.Err is the cause.
	Drain
	// Registered: the key exists, with Event.Token. Event.Position is where; without elders
	// and not complete: it is not known.
	Registered
	// Looked: at Event.Position the key had Event.Token; 0: there was none bound to our lease.
	Looked
	// Surveyed: at Event.Position, which has no elders, the key had Event.Token. Event.Yield
	// says that the user wants another candidate to lead.
	Surveyed
	// Deleted: at Event.Revision the life of the key that was asked for does not exist.
	Deleted
	// Refused: etcd refused the request for good, and did nothing, unless Event.Err, which says
	// why, wraps eldest.ErrOutcomeUnknown.
	Refused
	// Undone: the request was not carried out, and may be when it is sent again.
	Undone
	// Unanswered: it is not known what became of the request.
	Unanswered
	// Due: the pause after a failure is over.
	Due
	// ElderDeleted: the watched older key was deleted at Event.Revision.
	ElderDeleted
	// KeyDeleted: the candidate's key was deleted at Event.Revision, and not by the candidate.
	KeyDeleted
	// KeyUnsafe: the candidate's key exists, but cannot be counted on: it cannot be watched,
	// or is not bound to the lease any more. Event.Err says which.
	KeyUnsafe
	// KeyAppeared: a key with Event.Token was found although the candidate has given up: a
	// registration was carried out late.
	KeyAppeared
	// Suspend: the session's heartbeats cannot be counted on now. Event.Err says so. The key stays.
	Suspend
	// SessionEnded: the lease cannot be counted on any more. Event.Err says why.
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

// Event is what a candidate learns. The fields that its Kind does not name are zero.
type Event struct {
	Kind     Kind
	Want     Want
	Token    eldest.Token
	Position Position
	Revision int64
	Yield    bool
	Err      error
}

// Kinds are all kinds of events, in the order of the constants.
func Kinds() iter.Seq[Kind] { return all(kinds) }
