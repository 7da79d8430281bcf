package demo

import (
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// The exit codes of "eldest campaign" that the demo relies on, and -1 for a process
// that a signal ended.
const (
	codeLeft   = 0
	codeLost   = 3
	codeKilled = -1
)

// history writes facts, which are in order, as the oracle reads them.
func history(facts []Fact, limits Limits) *oracle.History {
	h := &oracle.History{About: oracle.About{Recovery: limits.Expiry}}
	joined, won := make(map[string]bool), make(map[string]bool) // by key
	for i, f := range facts {
		at := f.At.Sub(facts[0].At)
		tell := func(e oracle.Event) {
			e.Seq, e.At, e.Token, e.Key = len(h.Events)+1, at, int64(f.Token), f.Key
			h.Events = append(h.Events, e)
		}
		// A report of a registration may carry a later time than what followed from it.
		if (f.Kind == Registered || f.Kind == Waiting || f.Kind == Won) && !joined[f.Key] {
			joined[f.Key] = true
			tell(oracle.Event{Kind: oracle.Joined, Who: f.Actor, Code: codeLeft})
		}
		switch f.Kind {
		case Waiting:
			tell(oracle.Event{Kind: oracle.Moved, Who: f.Actor})
		case Won:
			won[f.Key] = true
			tell(oracle.Event{Kind: oracle.Won, Who: f.Actor})
		case Suspended:
			tell(oracle.Event{Kind: oracle.Suspended, Who: f.Actor})
		case Resumed:
			tell(oracle.Event{Kind: oracle.Resumed, Who: f.Actor})
		case Lost, Resigned:
			e := oracle.Event{Kind: oracle.Failed, Who: f.Actor, Code: codeLeft, Text: f.Cause}
			if won[f.Key] {
				e.Kind = oracle.Ended
			}
			if f.Kind == Lost {
				e.Code = codeLost
			}
			tell(e)
		case Acted:
			step := oracle.Event{Kind: oracle.Acted, Text: string(f.Act)}
			switch f.Act {
			case Mend, Leave:
				continue
			case Withdraw: // of a waiter
			default:
				step.Until = at + limits.of(f.Act)
			}
			tell(step)
			switch f.Act {
			case Kill, Silence:
				tell(oracle.Event{Kind: oracle.Crashed, Who: f.Actor, Code: codeKilled})
			case Delete:
				tell(oracle.Event{Kind: oracle.Removed})
			}
		case Exited:
			tell(oracle.Event{Kind: oracle.Exited, Who: f.Actor, Code: f.Code, Text: f.Cause})
		case Observed:
			e := oracle.Event{Kind: oracle.Observed, Who: "the observer", Text: f.State}
			if f.State == eldest.Unknown.String() {
				e.Reason = f.Cause
			}
			tell(e)
		case Guarded:
			e := oracle.Event{Kind: oracle.Sent, Who: f.Actor, Write: fmt.Sprintf("write %d", i)}
			tell(e)
			e.Kind = oracle.Refused
			if f.Accepted {
				e.Kind = oracle.Acked
			}
			tell(e)
		case Settled:
			tell(oracle.Event{Kind: oracle.Settled})
		case Left:
			if f.Keys+f.Leases > 0 {
				tell(oracle.Event{Kind: oracle.Left, Text: fmt.Sprintf("in etcd: %s and %s", story.Count(f.Keys, "key"), story.Count(f.Leases, "lease"))})
			}
		}
	}
	return h
}
