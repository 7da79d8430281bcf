package curator

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// Hooks are called for calls to elected services: those of Config.Services, and any that
// no node knows. Services that every node answers itself are not counted, nor are calls
// that an interceptor or Config.VerifyHop has refused before. Each may be nil.
//
// A hook is called on the call's goroutine, for many calls at once: it must be safe for
// concurrent use and return at once, because the caller is waiting for its answer. A panic
// in a hook is a panic in the call: it ends the process, unless an interceptor of
// Config.ServerOptions recovers.
type Hooks struct {
	// Answered is called once for each call, when its answer is known and has not been sent
	// yet. An interceptor of Config.ServerOptions may still change the answer.
	Answered func(CallEvent)
}

// CallEvent is one call at one node. A call that was forwarded has two: one at the node that
// the caller has called, and one at the leader, with Hop set.
type CallEvent struct {
	// Method is the full name, as it was called. Callers can invent names without limit.
	Method string
	// Way is where the call went.
	Way Way
	// Hop says that the call claims that another node has forwarded it.
	Hop bool
	// Code is that of the answer; Unknown if the handler panicked.
	Code codes.Code
	// Refusal is why a node has answered in the service's place. It is 0 if the service has
	// answered, if the call itself is at fault, or if the caller ended it. A call whose
	// caller ended it while it waited has the reason that it waited for.
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
	// WayRefused means that the call went nowhere.
	WayRefused Way = iota
	// WayServed means that this node took the call as the leader.
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
	// RefusalNoLeader means that the call waited for a leader in vain.
	RefusalNoLeader Refusal = iota + 1
	// RefusalUnreachable means that no connection to the leader was to be had.
	RefusalUnreachable
	// RefusalConnectionLost means that the connection to the leader broke when the call had
	// been sent: the request may have been carried out.
	RefusalConnectionLost
	// RefusalTenureEnded means that the leader lost or gave up leadership.
	RefusalTenureEnded
	// RefusalWrongNode means that the call was forwarded to a node that does not lead, or
	// not in the tenure that was meant.
	RefusalWrongNode
	// RefusalBusy means that too many calls waited, or too many bytes of theirs.
	RefusalBusy
	// RefusalStopping means that the node was about to stop.
	RefusalStopping
)

// String returns a word for the reason, such as "no_leader"; "none" for 0.
func (r Refusal) String() string { return word(refusalNames, int(r)) }

var refusalNames = []string{"none", "no_leader", "unreachable", "connection_lost", "tenure_ended", "wrong_node", "busy", "stopping"}

// refusalOf returns the reason that has the name; 0 for a name that is none.
func refusalOf(name string) Refusal { return Refusal(max(0, slices.Index(refusalNames, name))) }

func word(words []string, i int) string {
	if i >= len(words) {
		return "unknown"
	}
	return words[i]
}

// Refusals lists all reasons, for those who count them.
func Refusals() []Refusal {
	all := make([]Refusal, 0, len(refusalNames)-1)
	for i := range refusalNames[1:] {
		all = append(all, Refusal(i+1))
	}
	return all
}

// TeeHooks returns hooks that call those of all, in the order given. Those that are nil are
// left out; if all are, so is the result. all is copied. (Package hooks cannot do it: package
// elector imports it.)
func TeeHooks(all ...Hooks) Hooks {
	var answered []func(CallEvent)
	for _, h := range all {
		if h.Answered != nil {
			answered = append(answered, h.Answered)
		}
	}
	if len(answered) == 0 {
		return Hooks{}
	}
	return Hooks{Answered: func(e CallEvent) {
		for _, hook := range answered {
			hook(e)
		}
	}}
}

// Load is how many calls to elected services are under way at a node at one moment. Each
// counts once, but a call that another node has forwarded counts there as well.
type Load struct {
	// Waiting is the number of calls that wait for a leader, or for a connection to it.
	Waiting int
	// Held is how many bytes of messages this node keeps for calls that wait, or may come to.
	Held int64
	// Forwarding is the number of calls that are being forwarded to the leader, those whose
	// request is still being received included.
	Forwarding int
	// Serving is the number of calls that this node serves as the leader.
	Serving int
}

// Load returns how many calls are under way. The numbers are read one after another, while
// calls go on. It does not block.
func (c *Curator) Load() Load {
	load := c.traffic.load()
	load.Held = int64(c.backlog.load().bytes)
	return load
}
