package service

import (
	"cmp"
	"slices"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Audit judges a play by its evidence: what the play did and the nodes reported
// (facts), what the client was told (attempts), and everything that ever happened in
// etcd (changes, in order). It is a function of its arguments: the order of facts and
// attempts does not matter, their times do.
func Audit(facts []Fact, attempts []Attempt, changes []Change, limits Limits) []story.Verdict {
	x := exhibit(story.InOrder(facts), inOrder(attempts), changes)
	return append(x.checkAttempts(),
		x.checkAnswers(),
		x.checkForwarding(),
		x.checkFaults(),
		x.checkReturn(limits),
		x.checkEnds(),
	)
}

// AuditAttempts is the part of Audit that needs no play: whether what clients were told
// agrees with everything that ever happened in etcd (see Changes).
func AuditAttempts(attempts []Attempt, changes []Change) []story.Verdict {
	return exhibit(nil, inOrder(attempts), changes).checkAttempts()
}

func (x *exhibits) checkAttempts() []story.Verdict {
	return []story.Verdict{
		x.checkLost(),
		x.checkTwice(),
		x.checkRefused(),
		x.checkDeposed(),
		x.checkData(),
		x.checkReads(),
		x.checkTime(),
	}
}

// inOrder is that of the ends.
func inOrder(attempts []Attempt) []Attempt {
	attempts = slices.Clone(attempts)
	slices.SortStableFunc(attempts, func(a, b Attempt) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	return attempts
}
