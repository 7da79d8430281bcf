package transfer

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
)

// version is that of the letters which this package writes and reads.
const version = 1

// letter is what a mailbox holds: JSON, because people read it, too.
//
// Invariant: Taken only with a Request; not both a Request and an Answer.
type letter struct {
	Version int `json:"v"`
	// Token is the life of the candidate whose mailbox it is.
	Token eldest.Token `json:"token"`
	// Request is what is asked for; Taken says that the candidate does it now.
	Request *question `json:"request,omitempty"`
	Taken   bool      `json:"taken,omitempty"`
	// Answer is the one to the last request.
	Answer *answer `json:"answer,omitempty"`
}

// question is a Request on the wire.
type question struct {
	ID     string `json:"id"`
	What   What   `json:"do"`
	Leader life   `json:"leader"`
	Target life   `json:"target"`
}

// life is a candidate in one of its lives. Keys may hold any bytes, and JSON may not, so
// it is the lease that names it; the election is the mailbox's.
type life struct {
	Lease string       `json:"lease"`
	Token eldest.Token `json:"token"`
	// Box is the mod revision at which its mailbox was seen; 0: it has none.
	Box int64 `json:"box,omitempty"`
}

// answer is what came of a request.
type answer struct {
	ID   string `json:"id"`
	Done bool   `json:"done"`
	// Reason says why it was not done.
	Reason Reason `json:"reason,omitempty"`
	// Token is the candidate's life after a requeue.
	Token eldest.Token `json:"token,omitempty"`
}

func (l letter) encode() []byte {
	l.Version = version
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // there is nothing in it that cannot be written
	}
	return b
}

// decode reads what a mailbox holds. Fields that it does not know are left alone; other
// versions, and what is no letter, are an error that wraps eldest.ErrForeignValue.
func decode(value []byte) (letter, error) {
	var l letter
	if err := json.Unmarshal(value, &l); err != nil {
		return letter{}, fmt.Errorf("%w: a mailbox: %w", eldest.ErrForeignValue, err)
	}
	switch {
	case l.Version != version:
		return letter{}, fmt.Errorf("%w: a mailbox of version %d", eldest.ErrForeignValue, l.Version)
	case l.Token <= 0:
		return letter{}, fmt.Errorf("%w: a mailbox with token %d", eldest.ErrForeignValue, l.Token)
	case l.Taken && l.Request == nil, l.Request != nil && l.Answer != nil:
		return letter{}, fmt.Errorf("%w: a mailbox that contradicts itself", eldest.ErrForeignValue)
	}
	return l, nil
}

func lifeOf(m Member) life {
	return life{Lease: strconv.FormatInt(m.Lease, 16), Token: m.Token, Box: m.mod}
}

// candidate returns whom a life names in an election.
func (l life) candidate(election string) (eldest.Candidate, error) {
	lease, err := strconv.ParseInt(l.Lease, 16, 64)
	if err != nil || lease <= 0 || l.Token <= 0 {
		return eldest.Candidate{}, fmt.Errorf("%w: a mailbox names a candidate with lease %.64q and token %d", eldest.ErrForeignValue, l.Lease, l.Token)
	}
	return eldest.Candidate{Key: keys.Candidate(election, lease), Lease: lease, Token: l.Token}, nil
}
