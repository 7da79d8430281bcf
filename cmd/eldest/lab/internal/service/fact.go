package service

import (
	"time"

	"github.com/eldest-io/eldest"
)

// Kind says what a Fact is about.
type Kind string

// What nodes report of themselves: the events of "eldest service node --json".
const (
	Listening Kind = "listening"
	Status    Kind = "status"
)

// What the play does and sees.
const (
	// Acted: the play is about to do Act to Node, or to its Member.
	Acted Kind = "act"
	// Exited: the process of Node ended, with Code.
	Exited Kind = "exited"
	// Probed: a read through Member that needs a majority was OK or not.
	Probed Kind = "probe"
	// Settled: an act is over; all nodes that run agree that Node leads, with Token.
	Settled Kind = "settled"
	// Left: after the last node's departure Keys keys and Leases leases were left of
	// the election.
	Left Kind = "left"
)

// Act is something that the play does.
type Act string

// The acts. Resume ends a suspension, Mend a cut; Start brings a node's next process; Leave is the end of
// all nodes at the end of the play.
const (
	Stop        Act = "stop"         // SIGTERM to the leader
	Kill        Act = "kill"         // SIGKILL to the leader
	Suspend     Act = "suspend"      // SIGSTOP to the leader, whose key is removed then
	CutLeader   Act = "cut-leader"   // the leader's member from the others
	CutFollower Act = "cut-follower" // a follower's
	Resume      Act = "resume"
	Mend        Act = "mend"
	Start       Act = "start"
	Leave       Act = "leave"
)

// main reports whether the act is one that the audience came for.
func (a Act) main() bool { return a.changes() || a == CutFollower }

// changes reports whether the act takes leadership from its node.
func (a Act) changes() bool { return a == Stop || a == Kill || a == Suspend || a == CutLeader }

// The roles of nodes, as they report them.
const (
	leading   = "leading"
	following = "following"
	neither   = "neither"
)

// Fact is one thing that happened. Which fields mean something follows from Kind.
type Fact struct {
	// At is when, on this machine's wall clock.
	At   time.Time `json:"time"`
	Kind Kind      `json:"event"`
	Node string    `json:"node,omitempty"`
	Act  Act       `json:"act,omitempty"`
	// Token is the leader's: of the tenure that Act is against, that Node has, that it
	// follows, or on which all agree.
	Token  eldest.Token `json:"token,omitempty"`
	Key    string       `json:"key,omitempty"`
	Member string       `json:"member,omitempty"`

	Address string `json:"address,omitempty"`
	Role    string `json:"role,omitempty"`
	Leader  string `json:"leader,omitempty"`
	Reason  string `json:"reason,omitempty"`

	OK     bool `json:"ok,omitempty"`
	Code   int  `json:"code,omitempty"`
	Keys   int  `json:"keys,omitempty"`
	Leases int  `json:"leases,omitempty"`
}

// When is At.
func (f Fact) When() time.Time { return f.At }

// Stamped returns the fact with a time.
func (f Fact) Stamped(at time.Time) Fact {
	f.At = at
	return f
}

// By returns the fact as one that a node reported of itself.
func (f Fact) By(n *node) Fact {
	f.Node, f.Member = n.Name, n.Member.Name
	return f
}

// Exited returns the end of a node's process.
func (Fact) Exited(n *node, code int, complaint string) Fact {
	return Fact{Kind: Exited, Node: n.Name, Code: code, Reason: complaint}
}
