package service

import (
	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// Audit judges a play by its evidence: what the play did and the nodes reported
// (facts), what the client was told (attempts), and everything that ever happened in
// etcd (changes, in order). It is a function of its arguments: the order of facts and
// attempts does not matter, their times do.
//
// Package oracle has the rules of the protocol. Here are those of the play: that it did
// what it says, and that its nodes came back and answered.
func Audit(facts []Fact, attempts []Attempt, changes []Change, limits Limits) []story.Verdict {
	x := exhibit(story.InOrder(facts), story.InOrder(attempts), changes)
	h := x.history()
	return append(x.checkAttempts(h),
		x.checkAnswers(),
		x.checkForwarding(),
		x.checkFaults(),
		x.checkReturn(limits),
		x.checkEnds(h),
	)
}

// AuditAttempts is the part of Audit that needs no play: whether what clients were told
// agrees with everything that ever happened in etcd (see Changes).
func AuditAttempts(attempts []Attempt, changes []Change) []story.Verdict {
	x := exhibit(nil, story.InOrder(attempts), changes)
	return x.checkAttempts(x.history())
}

// checkAttempts names the rules and counts what there was to judge.
func (x *exhibits) checkAttempts(h *oracle.History) []story.Verdict {
	opened, applied, asked := make(map[eldest.Token]bool), make(map[string]bool), 0
	for _, e := range x.trail {
		if e.GetMethod() == kvpb.Record_METHOD_OPEN {
			opened[eldest.Token(e.GetToken())] = true
			continue
		}
		applied[e.GetRequestId()] = true
	}
	n, openApplied, reads, vain := make(map[Outcome]int), 0, 0, 0
	for _, a := range x.attempts {
		if a.reads() {
			if reads++; a.Method == Delete {
				vain++
			}
		}
		if !a.Method.writes() {
			continue
		}
		n[a.Outcome]++
		if applied[a.ID] {
			asked++
			if a.Outcome == Open {
				openApplied++
			}
		}
	}
	return []story.Verdict{
		story.Judge("no acknowledged write is lost", n[Done], story.Texts(oracle.Kept(h)), "%s, each with its record", story.Count(n[Done], "acknowledged write")),
		story.Judge("no attempt is applied twice", len(applied), story.Texts(oracle.Once(h)), "%s applied; of %d without a certain answer %d were",
			story.Count(len(applied), "attempt"), n[Open], openApplied),
		story.Judge("no refused write is applied", n[Refused], story.Texts(oracle.Refusals(h)), "%s", story.Count(n[Refused], "refused write")),
		story.Judge("no write of a deposed leader", len(x.trail), story.Texts(oracle.Rising(h), oracle.I2(h)), "%s in %s, each by who led one revision before",
			story.Count(len(x.trail), "record"), story.Count(len(opened), "tenure")),
		x.checkData(),
		story.Judge("no read is stale", reads, story.Texts(oracle.Fresh(h)), "%s, with %s of what was not there", story.Count(reads, "read"), story.Count(vain, "delete")),
		story.Judge("no write precedes its request", asked, story.Texts(oracle.Sequence(h)), "%s, each later than what was known when it was asked for",
			story.Count(asked, "write")),
	}
}

// checkEnds: every process ended as it should, and nothing is left in etcd (G8).
func (x *exhibits) checkEnds(h *oracle.History) story.Verdict {
	n := make(map[Kind]int)
	for _, f := range x.facts {
		n[f.Kind]++
	}
	return story.Judge("nothing is left", min(n[Exited], n[Left]), story.Texts(oracle.Exits(h), oracle.Leftovers(h)),
		"%s ended as it should; neither a candidate nor a lease stayed in etcd", story.Count(n[Exited], "process"))
}
