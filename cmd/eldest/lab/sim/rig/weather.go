package rig

import "time"

// weather is the condition of one direction of a host's network.
type weather struct {
	delay time.Duration // added to each write, order kept
	trip  time.Duration // the part of the delay that is always there
	held  bool          // nothing arrives until let go; nothing is lost
	loss  float64       // probability that a packet has to be sent again
	dead  bool          // the host is gone: nothing arrives, ever
}

// Way is a direction of a host's network, seen from the host.
type Way uint8

// The directions a condition can apply to.
const (
	Out  Way = 1 << iota // host to server: requests
	In                   // server to host: replies and events
	Both = Out | In
)

func (w Way) String() string {
	switch w {
	case Out:
		return "out"
	case In:
		return "in"
	default:
		return "both"
	}
}
