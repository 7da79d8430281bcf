package oracle

import (
	"fmt"
	"time"
)

// Event is one entry of the log: what somebody was told, did, or saw.
type Event struct {
	// Seq is the order in the log, and decides between equal instants. It is not
	// stored: whoever loads a history numbers anew.
	Seq int `json:"-"`
	// At is the instant, of a clock that all who tell share: virtual time, or one
	// machine's monotonic clock. 0 in what is given to a Log or a Recorder: now.
	At   time.Duration `json:"at"`
	Kind Kind          `json:"kind"`
	Who  string        `json:"who,omitempty"` // participant

	Token int64  `json:"token,omitempty"` // Won, Sure, writes, Fence..., Removed, Evicted (of whom it was), and whatever else is of one tenure: create revision; Joined: where it is filed only then
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
	// retire, Plan the revision at which the plan was made, Commit that at which the
	// target was seen to lead, and Tokens are the new lives of those who stepped back.
	Plan   int64   `json:"plan,omitempty"`
	Tokens []int64 `json:"tokens,omitempty"`
	// Rev is the revision of the store at this instant, where somebody knew; else 0.
	Rev int64 `json:"rev,omitempty"`

	// Until is when it was over. Of Sure, NotSure, Read and Queue: the reading of the
	// clock after the answer, where At is the one before the question. Of Trouble:
	// when it ends. Of Removed: when the owner must have ended by its own deadline, even
	// if no news ever arrive; 0: that is not known.
	Until time.Duration `json:"until,omitempty"`

	// Clear, of a removal: the owner's network and the server were well for a
	// second afterwards, so that it must have learnt of it in that time.
	Clear bool `json:"clear,omitempty"`
	// Lost, of Failed and Ended: the session is gone; of Exited: it was left without a word,
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
	s := fmt.Sprintf("%10.3fs %-6s %s", e.At.Seconds(), e.Who, e.Kind)
	if e.Until != 0 && e.Kind != Trouble {
		s += fmt.Sprintf(" until=%.3fs", e.Until.Seconds())
	}
	if e.Token != 0 {
		s += fmt.Sprintf(" token=%d", e.Token)
	}
	if e.Key != "" {
		s += " key=" + e.Key
	}
	if e.Lease != 0 {
		s += fmt.Sprintf(" lease=%x", e.Lease)
	}
	if e.Beat != 0 {
		s += fmt.Sprintf(" beat=%v", e.Beat)
	}
	if e.Write != "" {
		s += " write=" + e.Write
	}
	if e.Proof != 0 {
		s += fmt.Sprintf(" proof=%d", e.Proof)
	}
	if e.Kind == Transferred {
		s += fmt.Sprintf(" plan=%d commit=%d moved=%v", e.Plan, e.Commit, e.Tokens)
	}
	if e.Kind == Queue {
		s += fmt.Sprintf(" keys=%v", e.Keys)
	}
	if e.Text != "" {
		s += " " + e.Text
	}
	return s
}

// Change is one change of one key, as the store committed it.
type Change struct {
	Rev int64 `json:"rev"` // revision of the commit
	// At is the instant of the commit in virtual time; of a real store, when the
	// harness was told of it, which is later.
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

func (c Change) String() string {
	if c.Deleted {
		return fmt.Sprintf("%10.3fs store  rev=%d delete %s create=%d", c.At.Seconds(), c.Rev, c.Key, c.Create)
	}
	return fmt.Sprintf("%10.3fs store  rev=%d put %s create=%d value=%q", c.At.Seconds(), c.Rev, c.Key, c.Create, c.Value)
}
