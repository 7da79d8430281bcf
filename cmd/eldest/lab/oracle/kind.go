package oracle

// Kind says what an event tells.
type Kind string

// What participants tell. Joined, then Failed or Won; Won, then Ended once. In between Suspended and
// Resumed may take turns: what lies between them is a spell in which it leads.
const (
	Joined    Kind = "joined"    // begins to campaign, with its lease; before the first request
	Failed    Kind = "failed"    // the campaign returned an error
	Won       Kind = "won"       // the campaign returned a tenure; before anything is done with it
	Proven    Kind = "proven"    // of a win: the revision of its proof, where told
	Yielded   Kind = "yielded"   // its turn has come, and it is to give way to somebody who is wanted more
	Held      Kind = "held"      // asked at another's win, before that was told: still sure to lead
	LetGo     Kind = "let go"    // asked: no longer sure to lead
	Leaving   Kind = "leaving"   // is told to withdraw or to end altogether
	Resigning Kind = "resigning" // is about to give up its tenure
	Ended     Kind = "ended"     // the tenure told of its end
	Crashed   Kind = "crashed"   // the process is gone, and tells nothing more
	Stuck     Kind = "stuck"     // told to leave, it did not come to its end
	Suspended Kind = "suspended" // the tenure told that it does not lead for now; its key stands
	Resumed   Kind = "resumed"   // it leads on, with the same token; before anything is done with it
	Evicted   Kind = "evicted"   // it has deleted the key of another, whose heartbeats had stopped
	Serving   Kind = "serving"   // its lead function begins
	Served    Kind = "served"    // its lead function has returned
	Moved     Kind = "moved"     // is told for whom it waits, at first and whenever that changes
	Exited    Kind = "exited"    // its process ended, with Code, or it takes part no more
)

// Observed is what somebody who only looks on is told: Text is one of the three below.
const Observed Kind = "observed"

// What an observer is told: that Token leads, that nobody does, that it is not known, and
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
// one of which nothing more is told is as good as unclear.
const (
	Sent    Kind = "sent"    // filed before the request
	Acked   Kind = "acked"   // filed after the answer, as the two below
	Refused Kind = "refused" // did not happen and never will
	Unclear Kind = "unclear" // may have happened, and may yet happen
)

// Read is a linearizable read of the data key, asked for at At and answered at
// Until. With a token it was guarded by it. Reads that failed are not told.
const Read Kind = "read"

// What a store outside etcd did with a token, in its own order.
const (
	FenceAccepted Kind = "fence accepted"
	FenceRefused  Kind = "fence refused"
)

// What the world does to participants.
const (
	Removed Kind = "removed by hand" // key or lease of a candidate taken away; filed before the request
	Trouble Kind = "trouble"         // something is wrong with a host's network, or the server
	Fault   Kind = "fault"           // for the reader of the log
	Struck  Kind = "struck"          // the fault named by Text was seen to take effect

	// From Stopped to Continued the process of Who did not run: the former is filed
	// after it was seen to be stopped, the latter before it is told to go on.
	Stopped   Kind = "stopped"
	Continued Kind = "continued"
)

// Transferred is what whoever asked for a transfer of leadership was told: success.
const Transferred Kind = "transferred"

// KeepsOrder is Event.Text of a transfer that was to keep the order of all others.
const KeepsOrder = "keep"

// What a harness does that goes step by step.
const (
	// Acted is filed before a step, named by Text, that makes the candidate with Token
	// depart. A newer token must have won by Until; 0: it need not.
	Acted Kind = "acted"
	// Settled is filed when a step is over, and observers have had the time to hear of it:
	// by what participants tell, Token leads; 0: nobody does.
	Settled Kind = "settled"
)

// What the harness sees when the faults are over.
const (
	Quiet  Kind = "quiet"  // healed long ago: I5 is judged here
	Healed Kind = "healed" // no fault is left, and the store answers
	Queue  Kind = "queue"  // the candidates' keys between At and Until; asked for when all has settled
	Left   Kind = "left"   // something that should be gone is not: lease, key, goroutine, watch
)

// kinds are all of them: a history with any other was not written by us, and a
// checker would look for it in vain.
var kinds = map[Kind]bool{
	Joined: true, Failed: true, Won: true, Proven: true, Yielded: true, Held: true, LetGo: true, Leaving: true,
	Resigning: true, Ended: true, Crashed: true, Stuck: true, Sure: true, NotSure: true,
	Sent: true, Acked: true, Refused: true, Unclear: true, Read: true,
	FenceAccepted: true, FenceRefused: true, Removed: true, Trouble: true, Fault: true, Struck: true,
	Stopped: true, Continued: true, Transferred: true, Quiet: true, Healed: true, Queue: true, Left: true,
	Suspended: true, Resumed: true, Evicted: true, Serving: true, Served: true,
	Moved: true, Exited: true, Observed: true, Acted: true, Settled: true,
}
