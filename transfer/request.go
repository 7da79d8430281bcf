package transfer

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/mailbox"
)

// What is what a candidate is asked to do.
type What string

const (
	// Requeue asks a waiting candidate to enter the queue anew, at its end.
	Requeue What = "requeue"
	// Drain asks the leader to give leadership up.
	Drain What = "drain"
)

// Request is what somebody asks of a candidate, as it reads it in its mailbox. Whoever may
// write the mailbox may ask; nothing in it says who did.
type Request struct {
	// ID tells requests apart.
	ID   string
	What What
	// Election is the election's name.
	Election string
	// Asked is the candidate that is asked, Leader the one that leads, and Target the one
	// that is to lead; each with key, lease and token only.
	Asked, Leader, Target eldest.Candidate
}

// boxes are the mailboxes that must be as whoever asked has seen them: those of the
// leader and of the target, but for the one that is asked itself. So nobody moves one of
// them for another transfer at the same time.
func (q question) boxes(r Request) []mailbox.BoxAt {
	var boxes []mailbox.BoxAt
	if r.What != Drain {
		boxes = append(boxes, mailbox.BoxAt{Lease: r.Leader.Lease, Mod: q.Leader.Box})
	}
	return append(boxes, mailbox.BoxAt{Lease: r.Target.Lease, Mod: q.Target.Box})
}

// request reads what is asked of the candidate whose mailbox holds the letter.
func (q question) request(election string, asked eldest.Candidate) (Request, error) {
	r := Request{ID: q.ID, What: q.What, Election: election, Asked: asked}
	var err error
	if r.Leader, err = q.Leader.candidate(election); err == nil {
		r.Target, err = q.Target.candidate(election)
	}
	switch {
	case err != nil:
		return Request{}, err
	case q.ID == "" || len(q.ID) > 64:
		return Request{}, fmt.Errorf("%w: a request without a usable ID", eldest.ErrForeignValue)
	case q.What != Requeue && q.What != Drain:
		return Request{}, fmt.Errorf("%w: a request to %.64q", eldest.ErrForeignValue, q.What)
	case (q.What == Drain) != (r.Leader.Key == asked.Key), r.Target.Key == asked.Key, r.Target.Key == r.Leader.Key:
		return Request{}, fmt.Errorf("%w: a request to %q of the wrong candidate", eldest.ErrForeignValue, q.What)
	}
	return r, nil
}

// Hooks are told what happens at a mailbox. Each may be nil. They are called one at a
// time, in order, on a goroutine of their own; past a thousand waiting ones they are
// dropped.
type Hooks struct {
	// Opened: the candidate can be asked, in this life.
	Opened func(OpenedEvent)
	// Answered: a request was obeyed or refused.
	Answered func(AnsweredEvent)
	// Ignored: the mailbox held what cannot be read, and was written anew.
	Ignored func(IgnoredEvent)
}

// OpenedEvent tells of a mailbox that is there.
type OpenedEvent struct {
	// Election is the election's name, Key the candidate's key and Token its life.
	Election, Key string
	Token         eldest.Token
	// At is when it was known; the hook runs later.
	At time.Time
}

// AnsweredEvent tells what came of a request.
type AnsweredEvent struct {
	Request Request
	// Done says that it was obeyed; else Reason says why not.
	Done   bool
	Reason Reason
	// Token is the candidate's new life after a requeue.
	Token eldest.Token
	// At is when it was decided; the hook runs later.
	At time.Time
}

// IgnoredEvent tells of a letter that cannot be read.
type IgnoredEvent struct {
	Election, Key string
	// Err wraps eldest.ErrForeignValue.
	Err error
}
