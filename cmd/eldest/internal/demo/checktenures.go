package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/story"
)

// checkOneLeader: no two tenures overlap (G1, and G3 where a lease ended it).
func checkOneLeader(led []*candidacy) story.Verdict {
	var problems []string
	shortest := time.Duration(-1)
	for i, next := range led {
		for _, old := range led[:i] {
			if !old.goneBy(next.won) {
				problems = append(problems, fmt.Sprintf("%s (token %d) won while %s (token %d) led: %s",
					next.actor, next.token, old.actor, old.token, overlap(old, next)))
			}
		}
		if i > 0 && led[i-1].goneBy(next.won) {
			if gap := next.won.Sub(led[i-1].ended); shortest < 0 || gap < shortest {
				shortest = gap
			}
		}
	}
	detail := fmt.Sprintf("%s, no two overlap; a leader killed or deleted counts until the act", story.Count(len(led), "tenure"))
	if shortest >= 0 {
		detail += "; smallest gap " + story.Millis(shortest)
	}
	if len(problems) > 0 {
		detail = story.Count(len(led), "tenure")
	}
	return story.Judge("one leader at any time", len(led), problems, "%s", detail)
}

func overlap(old, next *candidacy) string {
	if old.ended.IsZero() {
		return "it never stopped"
	}
	return "for " + story.Millis(old.ended.Sub(next.won))
}

// checkTokens: each win has a higher token than all before it (G2).
func checkTokens(led []*candidacy) story.Verdict {
	var problems []string
	var tokens []string
	for i, c := range led {
		tokens = append(tokens, fmt.Sprint(c.token))
		if c.wins > 1 {
			problems = append(problems, fmt.Sprintf("%s won %d times with token %d", c.actor, c.wins, c.token))
		}
		if i > 0 && c.token <= led[i-1].token {
			problems = append(problems, fmt.Sprintf("%s won with token %d after %s with token %d",
				c.actor, c.token, led[i-1].actor, led[i-1].token))
		}
	}
	return story.Judge("tokens rise", len(led), problems, "%s", strings.Join(story.Shortened(tokens), " < "))
}

// checkOrder: whoever wins is the eldest of those who stand (G5).
func checkOrder(all, led []*candidacy) story.Verdict {
	var problems []string
	var winners []string
	for _, winner := range led {
		winners = append(winners, winner.actor)
		for _, c := range all {
			if c.token < winner.token && !c.goneBy(winner.won) {
				problems = append(problems, fmt.Sprintf("%s (create revision %d) won past %s, which stood with %d",
					winner.actor, winner.token, c.actor, c.token))
			}
		}
	}
	return story.Judge("wins in create-revision order", len(led), problems, "%s", strings.Join(story.Shortened(winners), ", "))
}

// checkWakes: a departure moves exactly one of those who stood before it: the one
// next behind (G5). Judged from act to act.
func checkWakes(facts []Fact, all []*candidacy) story.Verdict {
	var problems []string
	judged, moved := 0, 0
	for i, act := range facts {
		if act.Kind != Acted || act.Act == Mend || act.Act == Leave {
			continue
		}
		judged++
		woken, gone := make(map[string]bool), 0
		until := endOfAct(facts[i+1:])
		for _, c := range all {
			if c.entered.Before(act.At) && !c.goneBy(act.At.Add(-1)) && (c.key == act.Key || c.goneBy(until)) {
				gone++
			}
		}
		for _, f := range facts[i+1:] {
			if f.At.After(until) {
				break
			}
			if (f.Kind == Waiting || f.Kind == Won) && stoodAt(all, f.Key, act.At) {
				woken[f.Actor] = true
			}
		}
		moved += len(woken)
		// A partition may take several with it, each of which may wake one.
		if len(woken) == 0 || len(woken) > gone {
			problems = append(problems, fmt.Sprintf("%s %s: %s left, %s moved",
				act.Act, act.Actor, story.Count(gone, "candidate"), story.Count(len(woken), "candidate")))
		}
	}
	return story.Judge("one departure wakes one waiter", judged, problems, "%s, %s moved", story.Count(judged, "departure"), story.Count(moved, "waiter"))
}

// endOfAct is when the next act begins.
func endOfAct(rest []Fact) time.Time {
	for _, f := range rest {
		if f.Kind == Settled || f.Kind == Acted && f.Act != Mend {
			return f.At
		}
	}
	if len(rest) > 0 {
		return rest[len(rest)-1].At
	}
	return time.Time{}
}

// stoodAt reports whether key was in the queue at t.
func stoodAt(all []*candidacy, key string, t time.Time) bool {
	for _, c := range all {
		if c.key == key && c.entered.Before(t) && !c.goneBy(t) {
			return true
		}
	}
	return false
}
