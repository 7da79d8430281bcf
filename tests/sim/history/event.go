package history

import (
	"fmt"
	"time"
)

// Kind says what an event tells.
type Kind string

// What participants tell. Joined, then Failed or Won; Won, then Ended once.
const (
	Joined    Kind = "joined"    // begins to campaign, with its lease
	Failed    Kind = "failed"    // the campaign returned an error
	Won       Kind = "won"       // the campaign returned a tenure
	Proven    Kind = "proven"    // of a win: the revision of its proof, where told
	Held      Kind = "held"      // asked at another's win: still sure to lead
	LetGo     Kind = "let go"    // asked: no longer sure to lead
	Leaving   Kind = "leaving"   // is told to withdraw or to end altogether
	Resigning Kind = "resigning" // is about to give up its tenure
	Ended     Kind = "ended"     // the tenure told of its end
	Crashed   Kind = "crashed"   // the process is gone, and tells nothing more
	Stuck     Kind = "stuck"     // told to leave, it did not come to its end
)

// What became of guarded writes. Every write is sent before it is anything else.
const (
	Sent    Kind = "sent"
	Acked   Kind = "acked"
	Refused Kind = "refused"
	Unclear Kind = "unclear"
)

// What the world does to participants.
const (
	Removed Kind = "removed by hand" // key or lease of a candidate taken away
	Trouble Kind = "trouble"         // something is wrong with a host's network, or the server
	Fault   Kind = "fault"           // for the reader of the log
	Quiet   Kind = "quiet"           // healed long ago: I5 is judged here
)

// Event is one entry of the log.
type Event struct {
	Seq  int           // order in the log; decides between equal instants
	At   time.Duration // virtual instant
	Who  string        // participant
	Kind Kind

	Token int64  // Won, Held, LetGo, Resigning, Ended, writes, Removed: create revision
	Key   string // Won, Removed
	Lease int64  // Joined, Removed
	Write string // writes: the unique name of the write

	Proof int64 // Proven: revision of the winning proof
	Rev   int64 // revision of the store at this instant

	// Clear, of a removal: the owner's network and the server were well for a
	// second afterwards, so that it must have learnt of it in that time.
	Clear bool

	// Lost, of Failed and Ended: the session is gone.
	Lost bool
	// Until, of Trouble: when it ends.
	Until time.Duration

	Text string
}

func (e Event) String() string {
	s := fmt.Sprintf("%10.3fs %-6s %s", e.At.Seconds(), e.Who, e.Kind)
	if e.Token != 0 {
		s += fmt.Sprintf(" token=%d", e.Token)
	}
	if e.Key != "" {
		s += " key=" + e.Key
	}
	if e.Lease != 0 {
		s += fmt.Sprintf(" lease=%x", e.Lease)
	}
	if e.Write != "" {
		s += " write=" + e.Write
	}
	if e.Proof != 0 {
		s += fmt.Sprintf(" proof=%d", e.Proof)
	}
	if e.Text != "" {
		s += " " + e.Text
	}
	return s
}

// Change is one change of one key, as the store committed it.
type Change struct {
	Rev     int64         // revision of the commit
	At      time.Duration // virtual instant of the commit
	Key     string
	Deleted bool
	Value   string
	Create  int64 // create revision of the key; for a deletion, of the one deleted
	Lease   int64
}

func (c Change) String() string {
	if c.Deleted {
		return fmt.Sprintf("%10.3fs store  rev=%d delete %s create=%d", c.At.Seconds(), c.Rev, c.Key, c.Create)
	}
	return fmt.Sprintf("%10.3fs store  rev=%d put %s create=%d value=%q", c.At.Seconds(), c.Rev, c.Key, c.Create, c.Value)
}
