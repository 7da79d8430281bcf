package demo

import (
	"fmt"
	"time"
)

// Verdict is what one check found.
type Verdict struct {
	// Name is the property, as a phrase.
	Name string `json:"check"`
	// OK is true if nothing contradicts it and there was something to judge.
	OK bool `json:"ok"`
	// Detail says on what the verdict rests.
	Detail string `json:"detail"`
	// Problems are the violations.
	Problems []string `json:"problems,omitempty"`
}

// judge turns violations into a verdict. Nothing to judge is no success: a check
// that had no material would be green whatever the candidates did.
func judge(name string, material int, problems []string, detail string, args ...any) Verdict {
	if material == 0 {
		problems = append(problems, "nothing happened that could have been checked")
	}
	return Verdict{Name: name, OK: len(problems) == 0, Detail: fmt.Sprintf(detail, args...), Problems: problems}
}

// Limits are the longest times that a hand-over may take.
type Limits struct {
	// Told is for departures that etcd is told of: nobody waits for a lease.
	Told time.Duration
	// Expiry is for those that only the end of a lease reveals.
	Expiry time.Duration
}

// Check judges a history. It is a function of the facts: the order of the slice does
// not matter, their times do.
func Check(facts []Fact, limits Limits) []Verdict {
	facts = inOrder(facts)
	all := candidacies(facts)
	led := tenures(all)
	return []Verdict{
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

// Failed returns the verdicts that are not OK.
func Failed(verdicts []Verdict) []Verdict {
	var failed []Verdict
	for _, v := range verdicts {
		if !v.OK {
			failed = append(failed, v)
		}
	}
	return failed
}
