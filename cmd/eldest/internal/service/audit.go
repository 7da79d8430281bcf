package service

import (
	"cmp"
	"slices"

	"github.com/eldest-io/eldest/cmd/eldest/internal/story"
)

// Audit judges a play by its evidence: what the play did and the nodes reported
// (facts), what the client was told (attempts), and everything that ever happened in
// etcd (changes, in order). It is a function of its arguments: the order of facts and
// attempts does not matter, their times do.
func Audit(facts []Fact, attempts []Attempt, changes []Change, limits Limits) []story.Verdict {
	attempts = slices.Clone(attempts)
	slices.SortStableFunc(attempts, func(a, b Attempt) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	x := exhibit(story.InOrder(facts), attempts, changes)
	return []story.Verdict{
		x.checkLost(),
		x.checkTwice(),
		x.checkRefused(),
		x.checkDeposed(),
		x.checkData(),
		x.checkReads(),
		x.checkTime(),
		x.checkAnswers(),
		x.checkForwarding(),
		x.checkFaults(),
		x.checkReturn(limits),
		x.checkEnds(),
	}
}
