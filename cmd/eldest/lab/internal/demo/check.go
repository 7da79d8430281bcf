package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Limits are the longest times that a hand-over may take.
type Limits struct {
	// Told is for departures that etcd is told of: nobody waits for a lease.
	Told time.Duration
	// Expiry is for those that only the end of a lease reveals.
	Expiry time.Duration
}

// of is the limit of an act against a leader.
func (l Limits) of(a Act) time.Duration {
	if a.told() {
		return l.Told
	}
	return l.Expiry
}

// told reports whether etcd is told of the departure.
func (a Act) told() bool { return a == Resign || a == Delete || a == Leave }

// silent reports whether the candidate behind it hears no heartbeats any more.
func (a Act) silent() bool { return a == Silence }

// expired reports whether a lease has to run out.
func (a Act) expired() bool { return !a.told() && !a.silent() }

// Check judges a history. It is a function of the facts: the order of the slice does
// not matter, their times do. Package oracle has the rules; here they are named, and what
// there was to judge is counted.
func Check(facts []Fact, limits Limits) []story.Verdict {
	facts = story.InOrder(facts)
	h := history(facts, limits)
	led := tenures(candidacies(facts))
	changes := handovers(facts)
	var tokens, winners []string
	for _, c := range led {
		tokens, winners = append(tokens, fmt.Sprint(c.token)), append(winners, c.actor)
	}
	n := make(map[Kind]int)
	departures, accepted := 0, 0
	for _, f := range facts {
		n[f.Kind]++
		if f.Kind == Acted && f.Act != Mend && f.Act != Leave {
			departures++
		}
		if f.Accepted {
			accepted++
		}
	}
	return []story.Verdict{
		story.Judge("one leader at any time", len(led), story.Texts(oracle.I1(h)),
			"%s; a leader killed or deleted counts until the act%s", story.Count(len(led), "tenure"), smallestGap(led)),
		story.Judge("tokens rise", len(led), story.Texts(oracle.Tokens(h), oracle.Order(h)), "%s", strings.Join(story.Shortened(tokens), " < ")),
		story.Judge("wins in create-revision order", len(led), story.Texts(oracle.Overtaken(h)), "%s", strings.Join(story.Shortened(winners), ", ")),
		story.Judge("one departure wakes one waiter", departures, story.Texts(oracle.Wakes(h)), "%s", story.Count(departures, "departure")),
		story.Judge("hand-overs in time", len(changes), story.Texts(oracle.InTime(h)), "%s; when etcd was told: %s; when heartbeats had stopped: %s; when a lease had to run out: %s",
			story.Count(len(changes), "hand-over"), spread(changes, Act.told), spread(changes, Act.silent), spread(changes, Act.expired)),
		story.Judge("old tokens are refused", n[Guarded], story.Texts(oracle.Granted(h)),
			"guarded writes: %d with a past token refused, %d with the leader's accepted", n[Guarded]-accepted, accepted),
		story.Judge("the observer agrees", min(n[Observed], n[Settled]), story.Texts(oracle.Observations(h)), "%s, agreed after each of %s",
			story.Count(n[Observed], "report"), story.Count(n[Settled], "act")),
		story.Judge("processes end as they should", n[Exited], story.Texts(oracle.Exits(h)), "%s", story.Count(n[Exited], "process")),
		story.Judge("nothing is left in etcd", n[Left], story.Texts(oracle.Leftovers(h)), "no key and no lease after the last candidate went"),
	}
}

// smallestGap says how little time there was between two leaders.
func smallestGap(led []*candidacy) string {
	shortest := time.Duration(-1)
	for i := 1; i < len(led); i++ {
		if !led[i-1].goneBy(led[i].won) {
			continue
		}
		if gap := led[i].won.Sub(led[i-1].ended); shortest < 0 || gap < shortest {
			shortest = gap
		}
	}
	if shortest < 0 {
		return ""
	}
	return "; smallest gap " + story.Millis(shortest)
}

// spread renders the range of the hand-over times of one sort.
func spread(changes []Handover, sort func(Act) bool) string {
	low, high := time.Duration(-1), time.Duration(-1)
	for _, h := range changes {
		if !sort(h.Act) {
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
