package oracle

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Kind is the kind of an event.
type Kind string

// The reports of participants. Joined, then Failed or Won; Won, then Ended once. In between,
// Suspended and Resumed may alternate: between them are the spells in which the participant leads.
const (
	Joined    Kind = "joined"    // begins to campaign, with its lease; before the first request
	Failed    Kind = "failed"    // the campaign returned an error
	Won       Kind = "won"       // the campaign returned a tenure; before anything is done with it
	Proven    Kind = "proven"    // of a win: the revision of its proof, where known
	Yielded   Kind = "yielded"   // it could lead, but must yield to a candidate of higher priority
	Leaving   Kind = "leaving"   // is ordered to withdraw or to end its process
	Resigning Kind = "resigning" // is about to resign
	Ended     Kind = "ended"     // the tenure reported its end
	Crashed   Kind = "crashed"   // the process has crashed, and reports nothing more
	Stuck     Kind = "stuck"     // ordered to leave, it did not end
	Suspended Kind = "suspended" // the tenure reported that it does not lead for now; its key stays
	Resumed   Kind = "resumed"   // it leads again, with the same token; before anything is done with it
	Evicted   Kind = "evicted"   // it has deleted the key of another candidate, whose heartbeats had stopped
	Serving   Kind = "serving"   // its lead function begins
	Served    Kind = "served"    // its lead function has returned
	Moved     Kind = "moved"     // is notified of its predecessor, at first and whenever that changes
	Exited    Kind = "exited"    // its process ended, with Code, or it no longer takes part
)

// Observed is a notification of an observer: Text is one of the three below.
const Observed Kind = "observed"

// What an observer is notified of: that Token leads, that no candidate does, or that the leader is
// unknown, and why (Event.Reason).
const (
	Led     = "led"
	Nobody  = "nobody"
	Unknown = "unknown"
)

// What a participant finds when it checks itself: at some instant between the reading At and the
// reading Until it was, or was not, sure to lead by its token.
const (
	Sure    Kind = "sure"
	NotSure Kind = "not sure"
)

// The outcomes of guarded writes. Every write is sent first; one of which nothing more is reported
// counts as unclear.
const (
	Sent    Kind = "sent"    // recorded before the request
	Acked   Kind = "acked"   // recorded after the answer, as the two below
	Refused Kind = "refused" // was not executed and never will be
	Unclear Kind = "unclear" // may have been executed, or may yet be
)

// Read is a linearizable read of the data key, sent at At and answered at Until. With a token it
// was guarded by it. Failed reads are not recorded.
const Read Kind = "read"

// The answers of a store outside etcd to a token, in its own order.
const (
	FenceAccepted Kind = "fence accepted"
	FenceRefused  Kind = "fence refused"
)

// What is done to participants.
const (
	Removed Kind = "removed by hand" // the key or lease of a candidate; recorded before the request
	Trouble Kind = "trouble"         // something is wrong with a host's network, or the server
	Fault   Kind = "fault"           // for the reader of the log
	Struck  Kind = "struck"          // the fault named by Text was seen to take effect

	// From Stopped to Continued the process of Who did not run: the former is recorded after it was
	// seen to be stopped, the latter before it is continued.
	Stopped   Kind = "stopped"
	Continued Kind = "continued"
)

// Transferred is the success of a transfer of leadership, as its caller received it.
const Transferred Kind = "transferred"

// KeepsOrder is Event.Text of a transfer that must keep the order of all others.
const KeepsOrder = "keep"

// The events of a harness that executes single steps.
const (
	// Acted is recorded before a step, named by Text, that makes the candidate with Token depart.
	// If Until is not 0, a newer token must have won by then.
	Acted Kind = "acted"
	// Settled is recorded when a step is over, and observers have had the time to be notified: by
	// the reports of the participants, Token leads; 0: no candidate does.
	Settled Kind = "settled"
)

// The observations of the harness when the faults are over.
const (
	Quiet  Kind = "quiet"  // healed long ago: I5 is judged here
	Healed Kind = "healed" // no fault is left, and the store answers
	Queue  Kind = "queue"  // the candidates' keys between At and Until; listed when all has settled
	Left   Kind = "left"   // something was left behind: lease, key, goroutine, watch
)

// kinds are all of them: no checker handles another one.
var kinds = map[Kind]bool{
	Joined: true, Failed: true, Won: true, Proven: true, Yielded: true, Leaving: true,
	Resigning: true, Ended: true, Crashed: true, Stuck: true, Sure: true, NotSure: true,
	Sent: true, Acked: true, Refused: true, Unclear: true, Read: true,
	FenceAccepted: true, FenceRefused: true, Removed: true, Trouble: true, Fault: true, Struck: true,
	Stopped: true, Continued: true, Transferred: true, Quiet: true, Healed: true, Queue: true, Left: true,
	Suspended: true, Resumed: true, Evicted: true, Serving: true, Served: true,
	Moved: true, Exited: true, Observed: true, Acted: true, Settled: true,
}

// Event is one entry of the log.
type Event struct {
	// Seq is the order in the log, and decides between equal instants. It is not stored: Load
	// numbers the events again.
	Seq int `json:"-"`
	// At is the instant, of a clock that all participants share: virtual time, or one machine's
	// monotonic clock. If it is 0, a Log or a Recorder sets it to the present instant.
	At   time.Duration `json:"at"`
	Kind Kind          `json:"kind"`
	Who  string        `json:"who,omitempty"` // participant

	Token int64  `json:"token,omitempty"` // create revision of the tenure: of Won, Sure, writes, Fence..., Removed, Evicted (the evicted candidate's), and all others of one tenure; of Joined, if it is recorded with a token
	Key   string `json:"key,omitempty"`   // Won, Resumed, Removed, Evicted, Observed; Read: the register, if there are several
	Lease int64  `json:"lease,omitempty"` // Joined, Removed, Observed
	// Beat, of Joined: the time without heartbeats after which it may be evicted; 0: it has none.
	Beat  time.Duration `json:"beat,omitempty"`
	Write string        `json:"write,omitempty"` // writes: their unique name; Read: the name of the write that was read, empty if there was none yet

	Proof int64 `json:"proof,omitempty"` // Proven: revision of the winning proof
	// Commit, of Acked: the revision that the writer received; 0: none. Of Observed: the revision
	// of the state; 0: it is unknown.
	Commit int64 `json:"commit,omitempty"`
	// Code, of Exited: the exit code of the process; of Joined, Ended, Failed and Crashed: the code
	// with which it must end if nothing more happens.
	Code int `json:"code,omitempty"`
	// Of Transferred, Token is the target's, Proof the token of the leader that had to drain, Plan
	// the revision at which the plan was made, Commit the revision at which the target was seen to
	// lead, and Tokens are the new tokens of the candidates that requeued.
	Plan   int64   `json:"plan,omitempty"`
	Tokens []int64 `json:"tokens,omitempty"`
	// Rev is the revision of the store at this instant; 0 if it is unknown.
	Rev int64 `json:"rev,omitempty"`

	// Until is the end. Of Sure, NotSure, Read and Queue: the reading of the clock after the
	// answer, where At is the one before the request. Of Trouble: when it ends. Of Removed: when
	// the owner must have ended by its own deadline, even if it is never notified; 0: unknown.
	Until time.Duration `json:"until,omitempty"`

	// Clear, of Removed: the owner's network and the server had no fault for a second afterwards,
	// so that it must have been notified in that time.
	Clear bool `json:"clear,omitempty"`
	// Lost, of Failed and Ended: the session is lost; of Exited: it sent no request to leave, and
	// its lease must expire.
	Lost bool `json:"lost,omitempty"`
	// By, of Sure and NotSure: the participant at whose win it was sampled, before that was reported.
	By string `json:"by,omitempty"`
	// Denied, of Failed: the store refused the candidacy, for lack of space or of permission.
	Denied bool `json:"denied,omitempty"`
	// Keys, of Queue: the candidates' keys, oldest first.
	Keys []string `json:"keys,omitempty"`
	// Reason, of Observed: why the leader is unknown.
	Reason string `json:"reason,omitempty"`
	// Text is the name of a fault, a leftover, or the reason for an end; of Sent: the requested
	// operation, see [Change.Did].
	Text string `json:"text,omitempty"`
}

func (e Event) String() string {
	return fmt.Sprintf("%10.3fs %-6s %s%s", e.At.Seconds(), e.Who, e.Kind, fieldsOf(e))
}

// Change is one change of one key, as the store committed it.
type Change struct {
	Rev int64 `json:"rev"` // revision of the commit
	// At is the instant of the commit in virtual time; of a real store, the instant at which the
	// harness was notified of it, which is later.
	At      time.Duration `json:"at"`
	Key     string        `json:"key"`
	Deleted bool          `json:"deleted,omitempty"`
	// Value is the value that was put; of a register that a guarded write deleted: that write.
	Value  string `json:"value,omitempty"`
	Create int64  `json:"create"` // create revision of the key; for a deletion, of the deleted key
	Lease  int64  `json:"lease,omitempty"`

	// Of a write of a register, if the store records it: the operation, in the words of its
	// request; the key of the candidate that did it; and whether it opens its tenure, which no
	// client requests.
	Did    string `json:"did,omitempty"`
	Holder string `json:"holder,omitempty"`
	Opens  bool   `json:"opens,omitempty"`
}

func (c Change) String() string { return fmt.Sprintf("%10.3fs store %s", c.At.Seconds(), fieldsOf(c)) }

// fieldsOf formats the fields that are set, except those that begin the line, with the names under
// which they are stored.
func fieldsOf(of any) string {
	var b strings.Builder
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if !v.Field(i).IsZero() && !slices.Contains([]string{"-", "at", "who", "kind"}, name) {
			fmt.Fprintf(&b, " %s=%v", name, v.Field(i))
		}
	}
	return b.String()
}
