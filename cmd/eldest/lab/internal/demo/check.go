package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// How a leader's departure becomes known: etcd is told; the candidate behind it receives no heartbeat
// any more; or its lease has to expire.
func told(a scenario.Action) bool    { return a == Resign || a == Delete || a == scenario.Leave }
func silent(a scenario.Action) bool  { return a == Silence }
func expired(a scenario.Action) bool { return !told(a) && !silent(a) }

// limit is the longest time for the hand-over after an action.
func (c Config) limit(a scenario.Action) time.Duration {
	if told(a) {
		return c.Told()
	}
	return c.Expiry()
}

// Check judges facts, which are in order. Package oracle has the rules; here they are named, and
// what there was to judge is counted.
func (p *plan) Check(facts []scenario.Fact) []story.Verdict {
	h := history(facts, p.cfg)
	led, changes := tenures(facts), handovers(facts)
	var tokens, winners []string
	for _, c := range led {
		tokens, winners = append(tokens, fmt.Sprint(c.token)), append(winners, c.name)
	}
	n := make(map[scenario.Kind]int)
	departures, accepted := 0, 0
	for _, f := range facts {
		n[f.Kind]++
		if f.Kind == scenario.Acted && f.Action != scenario.Mend && f.Action != scenario.Leave {
			departures++
		}
		if f.Accepted {
			accepted++
		}
	}
	return []story.Verdict{
		story.Judge("one leader at any time", len(led), story.Texts(oracle.I1(h)),
			"%s; a leader killed or deleted counts until that%s", story.Count(len(led), "tenure"), smallestGap(led)),
		story.Judge("tokens rise", len(led), story.Texts(oracle.Tokens(h), oracle.Order(h)), "%s", strings.Join(story.Shortened(tokens), " < ")),
		story.Judge("wins in create-revision order", len(led), story.Texts(oracle.Overtaken(h)), "%s", strings.Join(story.Shortened(winners), ", ")),
		story.Judge("one departure wakes one waiter", departures, story.Texts(oracle.Wakes(h)), "%s", story.Count(departures, "departure")),
		story.Judge("hand-overs in time", len(changes), story.Texts(oracle.InTime(h)), "%s; when etcd was told: %s; when heartbeats had stopped: %s; when a lease had to expire: %s",
			story.Count(len(changes), "hand-over"), spread(changes, told), spread(changes, silent), spread(changes, expired)),
		story.Judge("old tokens are refused", n[Guarded], story.Texts(oracle.Granted(h)),
			"guarded writes: %d with a past token refused, %d with the leader's accepted", n[Guarded]-accepted, accepted),
		story.Judge("the observer agrees", min(n[Observed], n[scenario.Settled]), story.Texts(oracle.Observations(h)), "%s, agreed after each of %s",
			story.Count(n[Observed], "report"), story.Count(n[scenario.Settled], "step")),
		story.Judge("processes end as they should", n[scenario.Exited], story.Texts(oracle.Exits(h)), "%s", story.Count(n[scenario.Exited], "process")),
		story.Judge("nothing is left in etcd", n[scenario.Left], story.Texts(oracle.Leftovers(h)), "no key and no lease after the last candidate had left"),
	}
}

// smallestGap says how little time there was between two leaders.
func smallestGap(led []*candidacy) string {
	shortest := time.Duration(-1)
	for i := 1; i < len(led); i++ {
		old, next := led[i-1], led[i]
		if gap := next.won.Sub(old.ended); !old.ended.IsZero() && gap >= 0 && (shortest < 0 || gap < shortest) {
			shortest = gap
		}
	}
	if shortest < 0 {
		return ""
	}
	return "; smallest gap " + story.Millis(shortest)
}

// spread is the range of the hand-over times of one sort in words.
func spread(changes []Handover, sort func(scenario.Action) bool) string {
	low, high := time.Duration(-1), time.Duration(-1)
	for _, h := range changes {
		if !sort(h.Action) {
			continue
		}
		if low < 0 || h.took < low {
			low = h.took
		}
		high = max(high, h.took)
	}
	switch {
	case low < 0:
		return "none"
	case story.Millis(low) == story.Millis(high):
		return story.Millis(low)
	default:
		return story.Millis(low) + " to " + story.Millis(high)
	}
}

// Summary is what --json ends with.
type Summary struct {
	scenario.Result
	Handovers []Handover `json:"handovers"`
}

// Summary words what was found.
func (p *plan) Summary(facts []scenario.Fact, r scenario.Result) scenario.Summary {
	sum := Summary{r, handovers(facts)}
	var rows []string
	for _, h := range sum.Handovers {
		w := h.words()
		rows = append(rows, fmt.Sprintf("%-12s %s after %-18s %s", w.who,
			p.Style.Paint(story.Bold, fmt.Sprintf("%8s", w.took)), w.why, p.Style.Paint(story.Dim, w.tail)))
	}
	return scenario.Summary{
		Object: sum, Title: "Hand-overs", Rows: rows,
		Basis: "Checked, on what the candidates, the observer and the writer reported",
	}
}

// The exit codes of "eldest campaign" that the demo relies on, and -1 for a process
// that a signal ended.
const (
	codeLeft   = 0
	codeLost   = 3
	codeKilled = -1
)

// same are the kinds of facts that the oracle calls by another name, and nothing more.
var same = map[scenario.Kind]oracle.Kind{Waiting: oracle.Moved, Won: oracle.Won, Suspended: oracle.Suspended, Resumed: oracle.Resumed, scenario.Settled: oracle.Settled}

// history writes facts, which are in order, as the oracle reads them.
func history(facts []scenario.Fact, cfg Config) *oracle.History {
	h := &oracle.History{About: oracle.About{Recovery: cfg.Expiry()}}
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
			tell(oracle.Event{Kind: oracle.Joined, Who: f.Participant, Code: codeLeft})
		}
		won[f.Key] = won[f.Key] || f.Kind == Won
		if kind, ok := same[f.Kind]; ok {
			tell(oracle.Event{Kind: kind, Who: f.Participant})
		}
		if e, ok := f.End(); ok {
			tell(e)
		}
		switch f.Kind {
		case Lost, Resigned:
			e := oracle.Event{Kind: oracle.Failed, Who: f.Participant, Code: codeLeft, Text: f.Cause}
			if won[f.Key] {
				e.Kind = oracle.Ended
			}
			if f.Kind == Lost {
				e.Code = codeLost
			}
			tell(e)
		case scenario.Acted:
			if f.Action == scenario.Mend || f.Action == scenario.Leave {
				continue
			}
			step := oracle.Event{Kind: oracle.Acted, Text: string(f.Action)}
			if f.Action != Withdraw { // of a waiter
				step.Until = at + cfg.limit(f.Action)
			}
			tell(step)
			switch f.Action {
			case scenario.Kill, Silence:
				tell(oracle.Event{Kind: oracle.Crashed, Who: f.Participant, Code: codeKilled})
			case Delete:
				tell(oracle.Event{Kind: oracle.Removed})
			}
		case Observed:
			e := oracle.Event{Kind: oracle.Observed, Who: "the observer", Text: f.State}
			if f.State == eldest.Unknown.String() {
				e.Reason = f.Cause
			}
			tell(e)
		case Guarded:
			e := oracle.Event{Kind: oracle.Sent, Who: f.Participant, Write: fmt.Sprintf("write %d", i)}
			tell(e)
			e.Kind = oracle.Refused
			if f.Accepted {
				e.Kind = oracle.Acked
			}
			tell(e)
		}
	}
	return h
}
