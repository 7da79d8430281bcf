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

// Check judges facts, which are in order. The rules are those of package oracle; here they are
// named, and what was judged is counted.
func (p *plan) Check(facts []scenario.Fact) []story.Verdict {
	var begin time.Time
	if len(facts) > 0 {
		begin = facts[0].At
	}
	h := p.cfg.Record(begin, facts, record)
	led, changes := scenario.Tenures(facts), scenario.Handovers(facts)
	var tokens, winners []string
	for _, c := range led {
		tokens, winners = append(tokens, fmt.Sprint(c.Token)), append(winners, c.Name)
	}
	n := make(map[scenario.Kind]int)
	departures, accepted := 0, 0
	for _, f := range facts {
		n[f.Kind]++
		if f.Kind == scenario.Acted && (f.Action.Deposes() || f.Action == scenario.Withdraw) {
			departures++
		}
		if f.Accepted {
			accepted++
		}
	}
	expired := func(a scenario.Action) bool { return !a.Told() && !a.Silent() }
	return []story.Verdict{
		story.Judge("one leader at any time", len(led), story.Texts(oracle.I1(h)),
			"%s; the tenure of a killed or deleted leader ends with that action%s", story.Count(len(led), "tenure"), smallestGap(led)),
		story.Judge("tokens rise", len(led), story.Texts(oracle.Tokens(h), oracle.Order(h)), "%s", strings.Join(story.Shortened(tokens), " < ")),
		story.Judge("wins in create-revision order", len(led), story.Texts(oracle.Overtaken(h)), "%s", strings.Join(story.Shortened(winners), ", ")),
		story.Judge("one departure wakes one waiter", departures, story.Texts(oracle.Wakes(h)), "%s", story.Count(departures, "departure")),
		story.Judge("hand-overs in time", len(changes), story.Texts(oracle.InTime(h)), "%s; after a request to etcd: %s; after missing heartbeats: %s; after the expiry of a lease: %s",
			story.Count(len(changes), "hand-over"), spread(changes, scenario.Action.Told), spread(changes, scenario.Action.Silent), spread(changes, expired)),
		story.Judge("old tokens are refused", n[Guarded], story.Texts(oracle.Granted(h)),
			"guarded writes: %d with a past token refused, %d with the leader's accepted", n[Guarded]-accepted, accepted),
		story.Judge("the observer agrees", min(n[Observed], n[scenario.Settled]), story.Texts(oracle.Observations(h)), "%s, agreed after each of %s",
			story.Count(n[Observed], "report"), story.Count(n[scenario.Settled], "step")),
		story.Judge("processes end as they should", n[scenario.Exited], story.Texts(oracle.Exits(h)), "%s", story.Count(n[scenario.Exited], "process")),
		story.Judge("nothing is left in etcd", n[scenario.Left], story.Texts(oracle.Leftovers(h)), "no key and no lease after the last candidate had left"),
	}
}

// record adds to the record what the observer saw and the writer wrote.
func record(f scenario.Fact, tell func(oracle.Event)) {
	switch f.Kind {
	case Observed:
		e := oracle.Event{Kind: oracle.Observed, Who: "the observer", Text: f.State}
		if f.State == eldest.Unknown.String() {
			e.Reason = f.Cause
		}
		tell(e)
	case Guarded:
		e := oracle.Event{Kind: oracle.Sent, Who: f.Participant, Write: "write at " + f.At.String()}
		tell(e)
		e.Kind = oracle.Refused
		if f.Accepted {
			e.Kind = oracle.Acked
		}
		tell(e)
	}
}

// smallestGap returns the shortest time between two leaders, as text.
func smallestGap(led []*scenario.Candidacy) string {
	shortest := time.Duration(-1)
	for i := 1; i < len(led); i++ {
		old, next := led[i-1], led[i]
		if gap := next.Won.Sub(old.Ended); !old.Ended.IsZero() && gap >= 0 && (shortest < 0 || gap < shortest) {
			shortest = gap
		}
	}
	if shortest < 0 {
		return ""
	}
	return "; smallest gap " + story.Millis(shortest)
}

// spread returns the range of the hand-over times of one sort, as text.
func spread(changes []scenario.Handover, sort func(scenario.Action) bool) string {
	low, high := time.Duration(-1), time.Duration(-1)
	for _, h := range changes {
		if !sort(h.Action) {
			continue
		}
		if low < 0 || h.Took < low {
			low = h.Took
		}
		high = max(high, h.Took)
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

// Summary is the last object that --json prints.
type Summary struct {
	scenario.Result
	Handovers []scenario.Handover `json:"handovers"`
}

// Summary returns the results, as an object and as text.
func (p *plan) Summary(facts []scenario.Fact, r scenario.Result) scenario.Summary {
	sum := Summary{r, scenario.Handovers(facts)}
	var rows []string
	for _, h := range sum.Handovers {
		w := wordsOf(h)
		rows = append(rows, fmt.Sprintf("%-12s %s after %-18s %s", w.who,
			p.Style.Paint(story.Bold, fmt.Sprintf("%8s", w.took)), w.why, p.Style.Paint(story.Dim, w.tail)))
	}
	return scenario.Summary{
		Object: sum, Title: "Hand-overs", Rows: rows,
		Basis: "Checked, on what the candidates, the observer and the writer reported",
	}
}

// handoverWords is the text of one hand-over.
type handoverWords struct{ who, took, why, tail string }

func wordsOf(h scenario.Handover) handoverWords {
	cause, tail := "ended by itself", fmt.Sprintf("no leader for %s", story.Millis(h.Neither))
	switch h.Action {
	case scenario.Resign:
		cause = "resigned"
	case scenario.Delete:
		cause, tail = "lost its key", fmt.Sprintf("%s was notified after %s", h.From, story.Millis(h.Told))
	case scenario.Kill:
		cause, tail = "was killed", "its lease had to expire"
	case scenario.Silence:
		cause, tail = "was killed", "its heartbeats had stopped"
	case scenario.Cut:
		cause = "was partitioned"
	case scenario.Leave:
		cause = "left"
	}
	return handoverWords{who: h.From + " -> " + h.To, took: story.Millis(h.Took), why: h.From + " " + cause, tail: tail}
}
