package transfer

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/requestkey"
)

// What is the action that a request asks for.
type What string

const (
	// Requeue asks a waiting candidate to register again at the end of the queue.
	Requeue What = "requeue"
	// Drain asks the leader to give leadership up.
	Drain What = "drain"
)

// Request is a request to a candidate, as read from its request key. Every client that may write
// the request key may send one; the request does not name the client.
type Request struct {
	// ID identifies the request.
	ID   string
	What What
	// Election is the election's name.
	Election string
	// Asked is the candidate that received the request, Leader the leader, and Target the candidate
	// that is to lead; each with key, lease and token only.
	Asked, Leader, Target eldest.Candidate
}

// boxes returns the request keys that must not have changed since the requester read them: those of
// the leader and of the target, without that of the asked candidate itself. So no other transfer
// moves one of them at the same time.
func (q question) boxes(r Request) []requestkey.KeyAt {
	var boxes []requestkey.KeyAt
	if r.What != Drain {
		boxes = append(boxes, requestkey.KeyAt{Lease: r.Leader.Lease, Mod: q.Leader.Box})
	}
	return append(boxes, requestkey.KeyAt{Lease: r.Target.Lease, Mod: q.Target.Box})
}

// request converts the message in the request key of the candidate asked.
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

// Hooks are called for the events of a request key. Each may be nil. They are called one at a time,
// in order, on a goroutine of their own, also after Serve has returned; while a thousand calls wait,
// further calls are dropped.
type Hooks struct {
	// Opened: the candidate can receive requests with its current token.
	Opened func(OpenedEvent)
	// Answered: a request was carried out or refused.
	Answered func(AnsweredEvent)
	// Ignored: the request key had an unreadable value, and was written again.
	Ignored func(IgnoredEvent)
}

// OpenedEvent reports that a request key was written.
type OpenedEvent struct {
	// Election is the election's name, Key the candidate's key and Token its token.
	Election, Key string
	Token         eldest.Token
	// At is when the reply was received; the hook runs later.
	At time.Time
}

// AnsweredEvent reports the outcome of a request.
type AnsweredEvent struct {
	Request Request
	// Done means that it was carried out; otherwise Reason is why not.
	Done   bool
	Reason Reason
	// Token is the candidate's new token after a requeue.
	Token eldest.Token
	// At is when it was decided; the hook runs later.
	At time.Time
}

// IgnoredEvent reports an unreadable value.
type IgnoredEvent struct {
	Election, Key string
	// Err wraps eldest.ErrForeignValue.
	Err error
}
