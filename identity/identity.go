package identity

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Identity is what a node of a leader-elected service publishes about itself in the value of its
// candidate key. It is a plain value.
type Identity struct {
	// NodeID names the node: the same in each of its lives.
	// Invariant: not empty.
	NodeID string
	// Instance distinguishes two lives of one node; empty if the writer does not set it (older
	// programs write no such field).
	Instance string
	// Address is the address to which requests are forwarded, as gRPC dials it (host:port); empty
	// if the writer does not set it, and then nothing can be forwarded.
	Address string
	// TTL is the time to live that the server granted to the node's lease, in
	// whole seconds.
	TTL time.Duration
	// Priority is how much the node is preferred as the leader: a node with a lower one may yield
	// to it. 0 if the writer does not set it.
	Priority int32
}

// Codec turns an identity into the value of a candidate key and back. It must be
// safe for concurrent use.
type Codec interface {
	// Encode fails, with an error that wraps eldest.ErrInvalid, if the identity cannot be that of a
	// node.
	Encode(Identity) ([]byte, error)
	// Decode fails, with an error that wraps eldest.ErrForeignValue, for bytes that Encode cannot
	// have written.
	Decode([]byte) (Identity, error)
}

// NewInstance returns a name for this life of a node: 16 hexadecimal digits from the
// system's random source.
func NewInstance() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
	return hex.EncodeToString(b[:])
}
