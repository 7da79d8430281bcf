package demo

import (
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/story"
)

// Limits are the longest times that a hand-over may take.
type Limits struct {
	// Told is for departures that etcd is told of: nobody waits for a lease.
	Told time.Duration
	// Expiry is for those that only the end of a lease reveals.
	Expiry time.Duration
}

// Check judges a history. It is a function of the facts: the order of the slice does
// not matter, their times do.
func Check(facts []Fact, limits Limits) []story.Verdict {
	facts = story.InOrder(facts)
	all := candidacies(facts)
	led := tenures(all)
	return []story.Verdict{
		checkOneLeader(led),
		checkTokens(led),
		checkOrder(all, led),
		checkWakes(facts, all),
		checkHandovers(facts, led, limits),
		checkGuard(facts, led),
		checkObserver(facts, led),
		checkExits(facts),
		checkLeft(facts),
	}
}
