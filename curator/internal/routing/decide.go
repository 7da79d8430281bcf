package routing

import "github.com/eldest-io/eldest"

// Decision is what a node makes of a call.
type Decision uint8

// The decisions. A call waits at those up to Doubt.
const (
	Wait    Decision = iota // for another route
	Doubt                   // the same, but not for long
	Serve                   // in this node's tenure
	Forward                 // to the leader
	Refuse                  // a forwarded call that came to the wrong node, or too late
)

// View is what a node knows of leadership.
type View struct {
	Own     eldest.Token // of the tenure that is set up here; 0: none is
	Alive   bool         // calls may begin in it
	Follows bool         // another node leads, as far as is known
	Leaving bool         // and says that it serves no more
	Known   eldest.Token // of the last tenure that this node has heard of
	Over    bool         // no call is taken any more
}

// Decide says what to do with a call. token is that of the tenure that it was forwarded
// for; 0 is a caller's own call.
//
// A call that was forwarded here is never forwarded again, so two nodes that each take
// the other for the leader end it after one hop. It is served in the very tenure that
// it was meant for; where that tenure is newer than anything this node has heard of, it
// is this node's own, won and not yet set up. While the last leader is still taken for one
// here that is no more than likely: the others may also be wrong, and so it does not wait
// for long.
func (v View) Decide(token eldest.Token) Decision {
	forwarded := token > 0
	switch {
	case v.Over:
		return Refuse
	case v.Own > 0 && forwarded && token != v.Own:
		return Refuse
	case v.Own > 0 && v.Alive:
		return Serve
	case forwarded && (v.Own > 0 || token <= v.Known):
		return Refuse
	case forwarded && v.Follows:
		return Doubt
	case v.Follows && !v.Leaving:
		return Forward
	default:
		return Wait
	}
}
