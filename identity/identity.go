package identity

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Identity is what a node of a leader-elected service tells the others of itself in
// the value of its candidate key. It is a plain value.
type Identity struct {
	// NodeID names the node: the same in each of its lives.
	// Invariant: not empty.
	NodeID string
	// Instance tells two lives of one node apart; empty where the writer does not
	// say (older programs write no such field).
	Instance string
	// Address is where requests are forwarded to, as gRPC dials it (host:port);
	// empty where the writer does not say, and then nothing can be forwarded.
	Address string
	// TTL is the time to live that the server granted to the node's lease, in
	// whole seconds.
	TTL time.Duration
	// Priority is how much the node is wanted as the leader: a node with a lower one may
	// yield to it. 0 where the writer does not say.
	Priority int32
}

// Codec turns an identity into the value of a candidate key and back. It must be
// safe for concurrent use.
type Codec interface {
	// Encode fails, with an error that wraps eldest.ErrInvalid, for what cannot be
	// a node's identity.
	Encode(Identity) ([]byte, error)
	// Decode fails, with an error that wraps eldest.ErrForeignValue, for what
	// Encode cannot have written.
	Decode([]byte) (Identity, error)
}

// NewInstance returns a name for this life of a node: 16 hexadecimal digits from the
// system's random source.
func NewInstance() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
	return hex.EncodeToString(b[:])
}
