package scenario

import (
	"cmp"
	"slices"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Kind says what a Fact is about. Participants report kinds of their own: the events of
// "eldest campaign --json" and "eldest service node --json".
type Kind string

// What every demo does and sees.
const (
	// Acted: Action is about to be done to Participant, or to its Member.
	Acted Kind = "action"
	// Exited: the process of Participant ended, with Code.
	Exited Kind = "exited"
	// Settled: a step is over; by what participants report, Participant leads with Token (""
	// and 0: nobody does).
	Settled Kind = "settled"
	// Left: after the departure of all, Keys keys and Leases leases were left.
	Left Kind = "left"
)

// Action is something that a demo does to a participant or its member.
type Action string

// The actions that demos have in common. Mend ends a Cut; Leave is the departure at the very
// end, which needs no successor.
const (
	Kill  Action = "kill" // SIGKILL to the leader
	Mend  Action = "mend"
	Leave Action = "leave"
)

// Fact is one thing that happened. Which fields mean something follows from Kind.
type Fact struct {
	// At is when, on this machine's wall clock, without a monotonic reading.
	At          time.Time    `json:"time"`
	Kind        Kind         `json:"event"`
	Participant string       `json:"participant,omitempty"` // its short name
	Action      Action       `json:"action,omitempty"`
	Member      string       `json:"member,omitempty"`
	Key         string       `json:"key,omitempty"`
	Token       eldest.Token `json:"token,omitempty"`

	// Of a candidate.
	Predecessor string `json:"predecessor,omitempty"`
	Queue       int64  `json:"queue,omitempty"`
	Cause       string `json:"cause,omitempty"`
	// Of a node of a service.
	Address string `json:"address,omitempty"`
	Role    string `json:"role,omitempty"`
	Leader  string `json:"leader,omitempty"`
	Reason  string `json:"reason,omitempty"`

	// Of the demo.
	State    string       `json:"state,omitempty"` // that an observer reports
	Accepted bool         `json:"accepted,omitempty"`
	Found    eldest.Token `json:"found,omitempty"` // the token that a guard found
	OK       bool         `json:"ok,omitempty"`    // of a probe
	Code     int          `json:"code,omitempty"`
	Keys     int          `json:"keys,omitempty"`
	Leases   int          `json:"leases,omitempty"`
}

// When is At.
func (f Fact) When() time.Time { return f.At }

// End is how a process ended, or what was left, as the oracle reads it: an event without its
// instant. It reports whether the fact is one of these.
func (f Fact) End() (e oracle.Event, ok bool) {
	switch {
	case f.Kind == Exited:
		return oracle.Event{Kind: oracle.Exited, Who: f.Participant, Code: f.Code, Text: cmp.Or(f.Cause, f.Reason)}, true
	case f.Kind == Left && f.Keys+f.Leases > 0:
		return oracle.Event{Kind: oracle.Left, Text: "in etcd: " + story.Count(f.Keys, "key") + " and " + story.Count(f.Leases, "lease")}, true
	default:
		return e, false
	}
}

// Instant is what knows when it happened, on this machine's wall clock.
type Instant interface{ When() time.Time }

// InOrder sorts a copy by time. What is of the same instant keeps its order.
func InOrder[I Instant](all []I) []I {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b I) int { return a.When().Compare(b.When()) })
	return sorted
}
