package curator

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// Hooks are called for calls to elected services: those of Config.Services, and services that no
// node has. They are not called for services that every node answers itself, nor for calls that an
// interceptor or Config.VerifyHop has refused before. Each may be nil.
//
// A hook is called on the call's goroutine, for many calls at once: it must be safe for
// concurrent use and return at once, because the caller is waiting for its answer. A panic
// in a hook is a panic in the call: it ends the process, unless an interceptor of
// Config.ServerOptions recovers.
//
// A program with two hooks, such as its own and the one of package metrics, calls both in one
// function. (hooks.Tee combines hooks of elections.) Package traces needs no hook of these.
type Hooks struct {
	// Answered is called once for each call, when its answer is known and has not been sent
	// yet. An interceptor of Config.ServerOptions may still change the answer.
	Answered func(CallEvent)
}

// CallEvent is one call at one node. A call that was forwarded has two events: one at the node that
// the caller called, and one at the leader, with Hop set.
type CallEvent struct {
	// Method is the full name, as it was called. Callers may send any number of unknown names.
	Method string
	// Way is where the call went.
	Way Way
	// Hop is set if the call claims that another node has forwarded it.
	Hop bool
	// Code is the code of the answer; Unknown if the handler panicked.
	Code codes.Code
	// Refusal is why a node has answered in the service's place. It is 0 if the service has
	// answered, if the call itself is at fault, or if the caller ended it. If the caller ended the
	// call while it waited, Refusal is the reason for which it waited.
	Refusal Refusal
	// Waited is how long the call waited for a leader, and for a connection to it.
	Waited time.Duration
	// Took is the time from the call's arrival to its answer.
	Took time.Duration
	// Attempts is how many routes were tried: this node's tenure, or a leader.
	Attempts int
}

// Way is where a call went.
type Way uint8

const (
	// WayRefused means that the call was neither served nor forwarded.
	WayRefused Way = iota
	// WayServed means that this node handled the call as the leader.
	WayServed
	// WayForwarded means that this node sent the call to the leader.
	WayForwarded
)

// String returns a word for the way, such as "forwarded".
func (w Way) String() string { return word(wayNames, int(w)) }

var wayNames = []string{"refused", "served", "forwarded"}

// Refusal is why a node has answered a call in the service's place.
type Refusal uint8

const (
	// RefusalNoLeader means that the call waited for a leader and none was found in time.
	RefusalNoLeader Refusal = iota + 1
	// RefusalUnreachable means that no connection to the leader could be made.
	RefusalUnreachable
	// RefusalConnectionLost means that the connection to the leader broke after the call had been
	// sent: the request may have been carried out.
	RefusalConnectionLost
	// RefusalTenureEnded means that the leader lost or gave up leadership.
	RefusalTenureEnded
	// RefusalWrongNode means that the call was forwarded to a node that does not lead, or that
	// leads in another tenure than the one that was meant.
	RefusalWrongNode
	// RefusalBusy means that too many calls waited, or that they held too many bytes.
	RefusalBusy
	// RefusalStopping means that the node was about to stop.
	RefusalStopping
)

// String returns a word for the reason, such as "no_leader"; "none" for 0.
func (r Refusal) String() string { return word(refusalNames, int(r)) }

var refusalNames = []string{"none", "no_leader", "unreachable", "connection_lost", "tenure_ended", "wrong_node", "busy", "stopping"}

// refusalOf returns the reason that has the name; 0 if there is none.
func refusalOf(name string) Refusal { return Refusal(max(0, slices.Index(refusalNames, name))) }

func word(words []string, i int) string {
	if i >= len(words) {
		return "unknown"
	}
	return words[i]
}

// Refusals returns all reasons, for programs that count them.
func Refusals() []Refusal {
	all := make([]Refusal, 0, len(refusalNames)-1)
	for i := range refusalNames[1:] {
		all = append(all, Refusal(i+1))
	}
	return all
}

// Load is how many calls to elected services are under way at a node at one moment. Each call
// counts once at a node; a forwarded call also counts at the node that forwarded it.
type Load struct {
	// Waiting is the number of calls that wait for a leader, or for a connection to it.
	Waiting int
	// Held is how many bytes of messages this node keeps for calls that wait or may have to wait.
	Held int64
	// Forwarding is the number of calls that are being forwarded to the leader, including those
	// whose request is still being received.
	Forwarding int
	// Serving is the number of calls that this node serves as the leader.
	Serving int
}

// Load returns how many calls are under way. The numbers are read one after another, while calls
// begin and end. It does not block.
func (c *Curator) Load() Load {
	load := c.traffic.load()
	load.Held = int64(c.backlog.load().bytes)
	return load
}
