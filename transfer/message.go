package transfer

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
)

// version is the version of the messages that this package writes and reads.
const version = 1

// message is the message in a request key: JSON, because people read it too.
//
// Invariant: Taken only with a Request; not both a Request and an Answer.
type message struct {
	Version int `json:"v"`
	// Token is the token of the candidate that has the request key.
	Token eldest.Token `json:"token"`
	// Request is the request; Taken means that the candidate is carrying it out.
	Request *question `json:"request,omitempty"`
	Taken   bool      `json:"taken,omitempty"`
	// Answer is the answer to the last request.
	Answer *answer `json:"answer,omitempty"`
}

// question is a Request on the wire.
type question struct {
	ID     string `json:"id"`
	What   What   `json:"do"`
	Leader life   `json:"leader"`
	Target life   `json:"target"`
}

// life names a candidate with a token. Keys may contain any bytes, and JSON strings may not, so the
// lease names the candidate; the election is that of the request key.
type life struct {
	Lease string       `json:"lease"`
	Token eldest.Token `json:"token"`
	// Box is the mod revision at which its request key was read; 0 if it has none.
	Box int64 `json:"box,omitempty"`
}

// answer is the outcome of a request.
type answer struct {
	ID   string `json:"id"`
	Done bool   `json:"done"`
	// Reason is why it was not done.
	Reason Reason `json:"reason,omitempty"`
	// Token is the candidate's token after a requeue.
	Token eldest.Token `json:"token,omitempty"`
}

func (l message) encode() []byte {
	l.Version = version
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // every value of a message can be encoded
	}
	return b
}

// decode reads the message of a request key. It ignores unknown fields; other versions, and values
// that are no message, are an error that wraps eldest.ErrForeignValue.
func decode(value []byte) (message, error) {
	var l message
	if err := json.Unmarshal(value, &l); err != nil {
		return message{}, fmt.Errorf("%w: request key: %w", eldest.ErrForeignValue, err)
	}
	switch {
	case l.Version != version:
		return message{}, fmt.Errorf("%w: request key: message of version %d", eldest.ErrForeignValue, l.Version)
	case l.Token <= 0:
		return message{}, fmt.Errorf("%w: request key: message with token %d", eldest.ErrForeignValue, l.Token)
	case l.Taken && l.Request == nil, l.Request != nil && l.Answer != nil:
		return message{}, fmt.Errorf("%w: request key: inconsistent message", eldest.ErrForeignValue)
	}
	return l, nil
}

func lifeOf(m Member) life {
	return life{Lease: strconv.FormatInt(m.Lease, 16), Token: m.Token, Box: m.mod}
}

// candidate returns the candidate of an election that a life names.
func (l life) candidate(election string) (eldest.Candidate, error) {
	lease, err := strconv.ParseInt(l.Lease, 16, 64)
	if err != nil || lease <= 0 || l.Token <= 0 {
		return eldest.Candidate{}, fmt.Errorf("%w: request key: invalid candidate: lease %.64q, token %d", eldest.ErrForeignValue, l.Lease, l.Token)
	}
	return eldest.Candidate{Key: keys.Candidate(election, lease), Lease: lease, Token: l.Token}, nil
}
