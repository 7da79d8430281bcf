package oracle

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Kind says what an event reports.
type Kind string

// What participants report. Joined, then Failed or Won; Won, then Ended once. In between, Suspended and
// Resumed may take turns: what lies between them is a spell in which the participant leads.
const (
	Joined    Kind = "joined"    // begins to campaign, with its lease; before the first request
	Failed    Kind = "failed"    // the campaign returned an error
	Won       Kind = "won"       // the campaign returned a tenure; before anything is done with it
	Proven    Kind = "proven"    // of a win: the revision of its proof, where known
	Yielded   Kind = "yielded"   // it could lead, and is to yield to a candidate of higher priority
	Held      Kind = "held"      // asked at another's win, before that was reported: still sure to lead
	LetGo     Kind = "let go"    // asked: no longer sure to lead
	Leaving   Kind = "leaving"   // is told to withdraw or to end altogether
	Resigning Kind = "resigning" // is about to give up its tenure
	Ended     Kind = "ended"     // the tenure reported its end
	Crashed   Kind = "crashed"   // the process is gone, and reports nothing more
	Stuck     Kind = "stuck"     // told to leave, it did not come to its end
	Suspended Kind = "suspended" // the tenure reported that it does not lead for now; its key stays
	Resumed   Kind = "resumed"   // it leads on, with the same token; before anything is done with it
	Evicted   Kind = "evicted"   // it has deleted the key of another, whose heartbeats had stopped
	Serving   Kind = "serving"   // its lead function begins
	Served    Kind = "served"    // its lead function has returned
	Moved     Kind = "moved"     // is told for whom it waits, at first and whenever that changes
	Exited    Kind = "exited"    // its process ended, with Code, or it takes part no more
)

// Observed is what an observer is notified of: Text is one of the three below.
const Observed Kind = "observed"

// What an observer is notified of: that Token leads, that nobody does, that it is not known, and
// why (Event.Reason).
const (
	Led     = "led"
	Nobody  = "nobody"
	Unknown = "unknown"
)

// What a participant finds when it asks itself: at some instant between the
// reading At and the reading Until it was, or was not, sure to lead by its token.
const (
	Sure    Kind = "sure"
	NotSure Kind = "not sure"
)

// What became of guarded writes. Every write is sent before it is anything else;
// one of which nothing more is reported is as good as unclear.
const (
	Sent    Kind = "sent"    // recorded before the request
	Acked   Kind = "acked"   // recorded after the answer, as the two below
	Refused Kind = "refused" // did not happen and never will
	Unclear Kind = "unclear" // may have happened, and may yet happen
)

// Read is a linearizable read of the data key, asked for at At and answered at
// Until. With a token it was guarded by it. Reads that failed are not recorded.
const Read Kind = "read"

// What a store outside etcd did with a token, in its own order.
const (
	FenceAccepted Kind = "fence accepted"
	FenceRefused  Kind = "fence refused"
)

// What is done to participants.
const (
	Removed Kind = "removed by hand" // key or lease of a candidate taken away; recorded before the request
	Trouble Kind = "trouble"         // something is wrong with a host's network, or the server
	Fault   Kind = "fault"           // for the reader of the log
	Struck  Kind = "struck"          // the fault named by Text was seen to take effect

	// From Stopped to Continued the process of Who did not run: the former is recorded
	// after it was seen to be stopped, the latter before it is told to go on.
	Stopped   Kind = "stopped"
	Continued Kind = "continued"
)

// Transferred is what the caller of a transfer of leadership was told: success.
const Transferred Kind = "transferred"

// KeepsOrder is Event.Text of a transfer that was to keep the order of all others.
const KeepsOrder = "keep"

// What a harness does that goes step by step.
const (
	// Acted is recorded before a step, named by Text, that makes the candidate with Token
	// depart. A newer token must have won by Until; 0: it need not.
	Acted Kind = "acted"
	// Settled is recorded when a step is over, and observers have had the time to be notified:
	// by what participants report, Token leads; 0: nobody does.
	Settled Kind = "settled"
)

// What the harness sees when the faults are over.
const (
	Quiet  Kind = "quiet"  // healed long ago: I5 is judged here
	Healed Kind = "healed" // no fault is left, and the store answers
	Queue  Kind = "queue"  // the candidates' keys between At and Until; asked for when all has settled
	Left   Kind = "left"   // something that should be gone is not: lease, key, goroutine, watch
)

// kinds are all of them: no checker would look for another one.
var kinds = map[Kind]bool{
	Joined: true, Failed: true, Won: true, Proven: true, Yielded: true, Held: true, LetGo: true, Leaving: true,
	Resigning: true, Ended: true, Crashed: true, Stuck: true, Sure: true, NotSure: true,
	Sent: true, Acked: true, Refused: true, Unclear: true, Read: true,
	FenceAccepted: true, FenceRefused: true, Removed: true, Trouble: true, Fault: true, Struck: true,
	Stopped: true, Continued: true, Transferred: true, Quiet: true, Healed: true, Queue: true, Left: true,
	Suspended: true, Resumed: true, Evicted: true, Serving: true, Served: true,
	Moved: true, Exited: true, Observed: true, Acted: true, Settled: true,
}

// Event is one entry of the log.
type Event struct {
	// Seq is the order in the log, and decides between equal instants. It is not
	// stored: Load numbers anew.
	Seq int `json:"-"`
	// At is the instant, of a clock that all share: virtual time, or one
	// machine's monotonic clock. 0 in what is given to a Log or a Recorder: now.
	At   time.Duration `json:"at"`
	Kind Kind          `json:"kind"`
	Who  string        `json:"who,omitempty"` // participant

	Token int64  `json:"token,omitempty"` // Won, Sure, writes, Fence..., Removed, Evicted (of whom it was), and whatever else is of one tenure: create revision; Joined: where it is recorded only then
	Key   string `json:"key,omitempty"`   // Won, Resumed, Removed, Evicted, Observed; Read: the register, where there are several
	Lease int64  `json:"lease,omitempty"` // Joined, Removed, Observed
	// Beat, of Joined: after how much silence it may be evicted; 0: it has no heartbeats.
	Beat  time.Duration `json:"beat,omitempty"`
	Write string        `json:"write,omitempty"` // writes: their unique name; Read: of the write that was read, empty: none yet

	Proof int64 `json:"proof,omitempty"` // Proven: revision of the winning proof
	// Commit, of Acked: at which revision, as the writer was told; 0: it was not. Of
	// Observed: that of the state, 0: it is not known.
	Commit int64 `json:"commit,omitempty"`
	// Code, of Exited: what the process ended with; of Joined, Ended, Failed and Crashed:
	// what it must end with if nothing more becomes of it.
	Code int `json:"code,omitempty"`
	// Of Transferred, Token is the target's, Proof the token of the leader that was to
	// drain, Plan the revision at which the plan was made, Commit that at which the
	// target was seen to lead, and Tokens are the new lives of those that requeued.
	Plan   int64   `json:"plan,omitempty"`
	Tokens []int64 `json:"tokens,omitempty"`
	// Rev is the revision of the store at this instant, where somebody knew; else 0.
	Rev int64 `json:"rev,omitempty"`

	// Until is when it was over. Of Sure, NotSure, Read and Queue: the reading of the
	// clock after the answer, where At is the one before the question. Of Trouble:
	// when it ends. Of Removed: when the owner must have ended by its own deadline, even
	// if it is never notified; 0: that is not known.
	Until time.Duration `json:"until,omitempty"`

	// Clear, of a removal: the owner's network and the server were well for a
	// second afterwards, so that it must have been notified in that time.
	Clear bool `json:"clear,omitempty"`
	// Lost, of Failed and Ended: the session is gone; of Exited: it sent nothing to leave,
	// and its lease must expire.
	Lost bool `json:"lost,omitempty"`
	// By, of Held and LetGo: at whose win.
	By string `json:"by,omitempty"`
	// Denied, of Failed: the store refused the candidacy, for want of space or of
	// permission.
	Denied bool `json:"denied,omitempty"`
	// Keys, of Queue: the candidates' keys, oldest first.
	Keys []string `json:"keys,omitempty"`
	// Reason, of Observed: why it is not known who leads.
	Reason string `json:"reason,omitempty"`
	// Text is the name of a fault, what is left, why something ended; of Sent: what was
	// asked for, see [Change.Did].
	Text string `json:"text,omitempty"`
}

func (e Event) String() string {
	return fmt.Sprintf("%10.3fs %-6s %s%s", e.At.Seconds(), e.Who, e.Kind, fieldsOf(e))
}

// Change is one change of one key, as the store committed it.
type Change struct {
	Rev int64 `json:"rev"` // revision of the commit
	// At is the instant of the commit in virtual time; of a real store, when the
	// harness was notified of it, which is later.
	At      time.Duration `json:"at"`
	Key     string        `json:"key"`
	Deleted bool          `json:"deleted,omitempty"`
	// Value is what was put; of a register that a guarded write deleted: that write.
	Value  string `json:"value,omitempty"`
	Create int64  `json:"create"` // create revision of the key; for a deletion, of the one deleted
	Lease  int64  `json:"lease,omitempty"`

	// Of a write of a register, where the store says so: what was done, in the words in
	// which it was asked for; the key of the candidate that did it; and whether it opens
	// its tenure, which is asked for by nobody.
	Did    string `json:"did,omitempty"`
	Holder string `json:"holder,omitempty"`
	Opens  bool   `json:"opens,omitempty"`
}

func (c Change) String() string { return fmt.Sprintf("%10.3fs store %s", c.At.Seconds(), fieldsOf(c)) }

// fieldsOf renders the fields that are set, but for those that begin the line, by the names with which
// they are stored.
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
