package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/eldest-io/eldest"
)

// Kind is the kind of a Fact.
type Kind string

// Reports of participants: the events of "eldest campaign --json" and "eldest service node --json"
// that every demo uses. A plan may have others.
const (
	Registered Kind = "registered"
	Waiting    Kind = "waiting"
	Won        Kind = "leader"
	Lost       Kind = "lost"
	Resigned   Kind = "resigned"
	Suspended  Kind = "suspended"
	Resumed    Kind = "resumed"
	// Status: the node leads with Token, follows, or is unknown, by its Role.
	Status Kind = "status"
)

// What every demo does and observes.
const (
	// Acted: Action is about to be done to Participant, or to its Member.
	Acted Kind = "action"
	// Exited: the process of Participant ended, with Code.
	Exited Kind = "exited"
	// Settled: a step is over; according to the participants' reports, Participant leads with Token
	// ("" and 0: no participant leads).
	Settled Kind = "settled"
	// Left: after all participants had left, Keys keys and Leases leases were left.
	Left Kind = "left"
)

// Leading is the Role of a leader.
const Leading = "leading"

// Action is something that a demo does to a participant or its member.
type Action string

// The actions.
const (
	Resign      Action = "resign"   // SIGTERM to the leader
	Withdraw    Action = "withdraw" // SIGTERM to a waiter
	Kill        Action = "kill"     // SIGKILL to the leader
	Silence     Action = "silence"  // the same, of a leader with heartbeats
	Suspend     Action = "suspend"  // SIGSTOP to the leader, whose key is then deleted
	Resume      Action = "resume"   // SIGCONT to the former leader
	Delete      Action = "delete"   // the leader's key is deleted
	Cut         Action = "cut"      // the leader's member is partitioned
	CutFollower Action = "cut-follower"
	Mend        Action = "mend"  // the partition is healed
	Start       Action = "start" // a participant's next process
	Leave       Action = "leave" // a participant leaves at the very end, without a successor
)

// Told reports whether etcd is notified when the action takes leadership away. If not, a lease has
// to expire, unless the action is Silent.
func (a Action) Told() bool { return a == Resign || a == Suspend || a == Delete || a == Leave }

// Silent reports whether the action ends the heartbeats that the next candidate receives.
func (a Action) Silent() bool { return a == Silence }

// Deposes reports whether the action takes leadership away, so that there must be a successor.
func (a Action) Deposes() bool {
	return a.Told() && a != Leave || a == Kill || a == Silence || a == Cut
}

// crashes and removes report whether the action ends the tenure at once, in its process or in etcd.
func (a Action) crashes() bool { return a == Kill || a == Silence }
func (a Action) removes() bool { return a == Delete || a == Suspend }

// Fact is one event. Its Kind determines which fields are used.
type Fact struct {
	// At is the time, on this machine's wall clock, without a monotonic reading.
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
	State    string       `json:"state,omitempty"` // reported by an observer
	Accepted bool         `json:"accepted,omitempty"`
	Found    eldest.Token `json:"found,omitempty"` // the token that a guard found
	OK       bool         `json:"ok,omitempty"`    // of a probe
	Code     int          `json:"code,omitempty"`
	Keys     int          `json:"keys,omitempty"`
	Leases   int          `json:"leases,omitempty"`
}

// When returns At.
func (f Fact) When() time.Time { return f.At }

// actionWords describe what the demo does to a participant, its member or its key.
var actionWords = map[Action]string{
	Resign:      "sends SIGTERM to %[1]s, the leader",
	Withdraw:    "sends SIGTERM to %[1]s, a waiter",
	Leave:       "sends SIGTERM to %[1]s",
	Kill:        "sends SIGKILL to %[1]s, the leader",
	Silence:     "sends SIGKILL to %[1]s, the leader",
	Suspend:     "sends SIGSTOP to %[1]s, the leader,",
	Resume:      "sends SIGCONT to %[1]s",
	Delete:      "deletes %[3]s, the key of %[1]s, the leader",
	Cut:         "partitions %[2]s from the other members; the leader %[1]s reaches %[2]s only",
	CutFollower: "partitions %[2]s from the other members; %[1]s, which follows, reaches %[2]s only",
	Mend:        "joins %[2]s to the others again",
}

// Words describes the action; it is empty for a start, which is not reported.
func (f Fact) Words() string {
	if actionWords[f.Action] == "" {
		return ""
	}
	return fmt.Sprintf(actionWords[f.Action], f.Participant, f.Member, ShortKey(f.Key))
}

// ShortKey returns the end of a candidate's key, which is enough to distinguish keys.
func ShortKey(key string) string {
	const tail = 4
	if len(key) <= tail {
		return key
	}
	return ".." + key[len(key)-tail:]
}

// Timed is a value with a time, on this machine's wall clock.
type Timed interface{ When() time.Time }

// InOrder returns a copy that is sorted by time. Values of the same instant keep their order.
func InOrder[T Timed](all []T) []T {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b T) int { return a.When().Compare(b.When()) })
	return sorted
}
