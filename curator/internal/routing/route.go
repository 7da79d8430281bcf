package routing

import (
	"cmp"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
)

// Decision is what a node does with a call.
type Decision uint8

// The decisions. Those up to WaitBriefly let the call wait.
const (
	Wait        Decision = iota // for another route
	WaitBriefly                 // the same, but not for long
	Serve                       // in this node's tenure
	Forward                     // to the leader
	Refuse                      // a forwarded call that came to the wrong node, or too late
)

// Tenure is a tenure of this node: the calls that run in it, and what serves them.
type Tenure[S any] struct {
	*Calls
	Token   eldest.Token
	Service S
}

// Peer is the leader, if it is another node, with the connection to it.
type Peer interface {
	comparable
	Leader() elector.Leader
	// Close ends the connection. It must not block; calls in flight may have a moment to end. If the
	// reason is ErrMoved, they continue, and Close is called again, with the reason for which they end.
	Close(reason error)
}

// Route is where calls go at a moment. It is immutable and compared by identity.
//
// Invariant: at most one of Tenure and Peer is set; Reason is set if neither is.
type Route[S any, P Peer] struct {
	Tenure *Tenure[S] // this node leads
	Peer   P          // this node follows; the zero value if it does not
	Reason error      // why there is neither
	// Leaving: the leader has announced that it serves no more.
	Leaving bool
	// Over: no other route follows.
	Over bool
	// known is the token of the last tenure that this node has received.
	known eldest.Token
}

// Follows reports whether another node leads, as far as is known.
func (r *Route[S, P]) Follows() bool {
	var none P
	return r.Peer != none
}

// Decide returns what to do with a call. token is that of the tenure that the call was forwarded
// for; it is 0 for a call that comes from a caller.
//
// A call that was forwarded here is never forwarded again, so two nodes that each take the other
// for the leader end it after one hop. It is served only in the tenure that it was meant for. If
// that tenure is newer than the last one that this node has received, it is probably this node's
// own, won and not yet set up. While this node still follows another leader, that is less likely,
// so the call waits only briefly.
func (r *Route[S, P]) Decide(token eldest.Token) Decision {
	forwarded, leads := token > 0, r.Tenure != nil
	switch {
	case r.Over:
		return Refuse
	case leads && forwarded && token != r.Tenure.Token:
		return Refuse
	case leads && r.Tenure.Over() == nil:
		return Serve
	case forwarded && (leads || token <= r.known):
		return Refuse
	case forwarded && r.Follows():
		return WaitBriefly
	case r.Follows() && !r.Leaving:
		return Forward
	default:
		return Wait
	}
}

// Why returns why the route does not take a call of a caller.
func (r *Route[S, P]) Why() error {
	switch {
	case r.Tenure != nil:
		return cmp.Or(r.Tenure.Over(), eldest.ErrNoLeader)
	case r.Leaving:
		return fmt.Errorf("%w: leader %+q is stopping, or not ready yet", eldest.ErrNoLeader, r.Peer.Leader().NodeID)
	default:
		return cmp.Or(r.Reason, eldest.ErrNoLeader)
	}
}

// WrongNode returns why the route refuses a call that node from has forwarded to this node, for the
// tenure with the token.
func (r *Route[S, P]) WrongNode(from, node string, token eldest.Token) error {
	var how string
	switch {
	case r.Over:
		return r.Reason
	case r.Tenure != nil && r.Tenure.Token != token:
		how = fmt.Sprintf("which leads with token %d instead of %d", r.Tenure.Token, token)
	case r.Follows():
		how = fmt.Sprintf("which follows node %+q", r.Peer.Leader().NodeID)
	default:
		how = fmt.Sprintf("which does not lead with token %d: %v", token, r.Why())
	}
	return fmt.Errorf("node %+q forwarded to %+q, %s", from, node, how)
}
