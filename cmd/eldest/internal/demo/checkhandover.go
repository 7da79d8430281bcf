package demo

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/story"
)

// checkHandovers: each act against a leader has a successor in time. Where etcd is
// told of the departure nobody waits for a lease.
func checkHandovers(facts []Fact, led []*candidacy, limits Limits) story.Verdict {
	var problems []string
	changes := handovers(facts)
	for _, h := range changes {
		limit := limits.Told
		if h.Act != Resign && h.Act != Delete && h.Act != Leave {
			limit = limits.Expiry
		}
		if h.Took > limit {
			problems = append(problems, fmt.Sprintf("%s of %s: %s leads after %s, later than %v", h.Act, h.From, h.To, story.Millis(h.Took), limit))
		}
	}
	if n := len(led); n > 0 && led[n-1].act != Leave && led[n-1].act != "" {
		problems = append(problems, fmt.Sprintf("%s of %s: nobody succeeded it", led[n-1].act, led[n-1].actor))
	}
	told, expired := spread(changes, false), spread(changes, true)
	return story.Judge("hand-overs in time", len(changes), problems, "%s; when etcd was told: %s; when a lease had to run out: %s", story.Count(len(changes), "hand-over"), told, expired)
}

// spread renders the range of the hand-over times of one sort.
func spread(changes []Handover, expiry bool) string {
	low, high := time.Duration(-1), time.Duration(-1)
	for _, h := range changes {
		if (h.Act == Resign || h.Act == Delete || h.Act == Leave) == expiry {
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

// checkGuard: a write with the token of a past tenure is refused, one with the
// token of the present tenure is not (G4); and each tenure that an act ended was
// tried after its successor's win.
func checkGuard(facts []Fact, led []*candidacy) story.Verdict {
	var problems []string
	refused, accepted := 0, 0
	tried := make(map[eldest.Token]bool)
	for _, f := range facts {
		if f.Kind != Guarded {
			continue
		}
		past := false
		for _, c := range led {
			past = past || c.token > f.Token && !c.won.After(f.At)
		}
		tried[f.Token] = tried[f.Token] || past
		switch {
		case f.Accepted && past:
			problems = append(problems, fmt.Sprintf("a write with the old token %d was accepted", f.Token))
		case !f.Accepted && !past:
			problems = append(problems, fmt.Sprintf("a write of the leader with token %d was refused: %s", f.Token, f.Cause))
		}
		if f.Accepted {
			accepted++
		} else {
			refused++
		}
	}
	for _, h := range handovers(facts) {
		if !tried[h.OldToken] && h.Act != Leave && h.Act != "" {
			problems = append(problems, fmt.Sprintf("no write was tried with the old token %d", h.OldToken))
		}
	}
	return story.Judge("old tokens are refused", refused+accepted, problems, "guarded writes: %d with a past token refused, %d with the leader's accepted", refused, accepted)
}

// checkObserver: the tokens it reports never fall, whoever it reports has won, and
// after each act it agrees with the candidates (G6).
func checkObserver(facts []Fact, led []*candidacy) story.Verdict {
	var problems []string
	var newest eldest.Token
	var last Fact
	reports, settled := 0, 0
	for _, f := range facts {
		switch f.Kind {
		case Observed:
			reports++
			last = f
			if f.State != eldest.Led.String() {
				continue
			}
			if f.Token < newest {
				problems = append(problems, fmt.Sprintf("it reported token %d after %d", f.Token, newest))
			}
			newest = max(newest, f.Token)
			if !won(led, f) {
				problems = append(problems, fmt.Sprintf("it reported token %d, which nobody won with", f.Token))
			}
		case Settled:
			settled++
			if last.Key != f.Key || last.Token != f.Token || last.State == eldest.Unknown.String() {
				problems = append(problems, fmt.Sprintf("the candidates said %s, it said %s (token %d)", leaderName(f), last.State, last.Token))
			}
		}
	}
	return story.Judge("the observer agrees", min(reports, settled), problems, "%s, agreed after each of %s", story.Count(reports, "report"), story.Count(settled, "act"))
}

func won(led []*candidacy, f Fact) bool {
	for _, c := range led {
		if c.key == f.Key && c.token == f.Token {
			return true
		}
	}
	return false
}

func leaderName(f Fact) string {
	if f.Token == 0 {
		return "nobody leads"
	}
	return fmt.Sprintf("%s leads (token %d)", f.Actor, f.Token)
}
