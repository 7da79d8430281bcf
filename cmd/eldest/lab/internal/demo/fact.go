package demo

import (
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
)

// Kind says what a Fact is about.
type Kind string

// What candidates report of themselves: the events of "eldest campaign --json".
const (
	Registered Kind = "registered"
	Waiting    Kind = "waiting"
	Won        Kind = "leader"
	Jeopardy   Kind = "jeopardy"
	Recovered  Kind = "recovered"
	Lost       Kind = "lost"
	Resigned   Kind = "resigned"
	Suspended  Kind = "suspended"
	Resumed    Kind = "resumed"
	Evicted    Kind = "evicted"
)

// What the demo does and sees.
const (
	// Acted: the demo is about to do Act to the candidate Actor.
	Acted Kind = "act"
	// Exited: the process of Actor ended, with Code.
	Exited Kind = "exited"
	// Observed: the observer reports State, and Key and Token of the leader.
	Observed Kind = "observed"
	// Guarded: a write under the guard of Key and Token was Accepted or not; Found
	// is the token that the guard found instead.
	Guarded Kind = "guarded"
	// Settled: an act is over; the candidates say that Key with Token leads (""
	// and 0: nobody), and the observer has had time to see it.
	Settled Kind = "settled"
	// Left: after the last candidate's departure Keys keys and Leases leases
	// were left.
	Left Kind = "left"
)

// Act is something that the demo does to a candidate, its key or its member.
type Act string

// The acts. Leave is the departure at the very end, which needs no successor.
const (
	Resign   Act = "resign"
	Withdraw Act = "withdraw"
	Kill     Act = "kill"
	Silence  Act = "silence" // a kill, of one with heartbeats
	Delete   Act = "delete"
	Cut      Act = "cut"
	Mend     Act = "mend"
	Leave    Act = "leave"
)

// Fact is one thing that happened. Which fields mean something follows from Kind.
type Fact struct {
	// At is when, on this machine's wall clock.
	At   time.Time `json:"time"`
	Kind Kind      `json:"event"`
	// Actor is a candidate's short name: c1, c2, ...
	Actor  string       `json:"actor,omitempty"`
	Act    Act          `json:"act,omitempty"`
	Member string       `json:"member,omitempty"`
	Key    string       `json:"key,omitempty"`
	Token  eldest.Token `json:"token,omitempty"`

	Predecessor string `json:"predecessor,omitempty"`
	Queue       int64  `json:"queue,omitempty"`
	Cause       string `json:"cause,omitempty"`

	State    string       `json:"state,omitempty"`
	Accepted bool         `json:"accepted,omitempty"`
	Found    eldest.Token `json:"found,omitempty"`
	Code     int          `json:"code,omitempty"`
	Keys     int          `json:"keys,omitempty"`
	Leases   int          `json:"leases,omitempty"`
}

// When is At.
func (f Fact) When() time.Time { return f.At }

// Stamped returns the fact with a time.
func (f Fact) Stamped(at time.Time) Fact {
	f.At = at
	return f
}

// By returns the fact as one that a candidate reported of itself.
func (f Fact) By(p *scenario.Participant) Fact {
	f.Actor, f.Member = p.Name, p.Member.Name
	return f
}

// Exited returns the end of a candidate's process.
func (Fact) Exited(p *scenario.Participant, code int, complaint string) Fact {
	return Fact{Kind: Exited, Actor: p.Name, Code: code, Cause: complaint}
}
