package service

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// Audit judges a run by its evidence: what the demo did and the nodes reported (facts), the
// responses to the client (attempts), and all changes that ever happened in etcd (changes, in
// order). It is a function of its arguments: the order of facts and attempts does not matter, their
// times do.
//
// The rules of the protocol are in package oracle. The rules of the demo are here: that its faults
// took effect, and that its nodes came back and answered.
func Audit(facts []scenario.Fact, attempts []Attempt, changes []Change, cfg Config) []story.Verdict {
	x := newEvidence(facts, attempts, changes)
	h := x.history(cfg)
	n := make(map[scenario.Kind]int)
	for _, f := range x.facts {
		n[f.Kind]++
	}
	return append(x.checkAttempts(h),
		x.checkAnswers(),
		x.checkForwarding(),
		x.checkFaults(),
		x.checkReturn(h, cfg),
		story.Judge("nothing is left", min(n[scenario.Exited], n[scenario.Left]), story.Texts(oracle.Exits(h), oracle.Leftovers(h)),
			"%s ended as expected; no candidate and no lease is left in etcd", story.Count(n[scenario.Exited], "process")),
	)
}

// AuditAttempts is the part of Audit that needs no demo: whether the responses to clients agree
// with all changes that ever happened in etcd (see Changes).
func AuditAttempts(attempts []Attempt, changes []Change) []story.Verdict {
	x := newEvidence(nil, attempts, changes)
	return x.checkAttempts(x.history(Config{}))
}

// checkAttempts names the rules and counts what was judged.
func (x *evidence) checkAttempts(h *oracle.History) []story.Verdict {
	opened, applied := make(map[int64]bool), make(map[string]bool)
	for _, e := range x.trail {
		if e.GetMethod() == kvpb.Record_METHOD_OPEN {
			opened[e.GetToken()] = true
			continue
		}
		applied[e.GetRequestId()] = true
	}
	n, asked, openApplied, reads, vain := make(map[Outcome]int), 0, 0, 0, 0
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
		story.Judge("no write of a deposed leader", len(x.trail), story.Texts(oracle.Rising(h), oracle.I2(h)), "%s in %s, each by the leader one revision before",
			story.Count(len(x.trail), "record"), story.Count(len(opened), "tenure")),
		x.checkData(),
		story.Judge("no read is stale", reads, story.Texts(oracle.Fresh(h)), "%s, with %s of what was not there", story.Count(reads, "read"), story.Count(vain, "delete")),
		story.Judge("no write precedes its request", asked, story.Texts(oracle.Sequence(h)), "%s, each later than all revisions that were known at its request",
			story.Count(asked, "write")),
	}
}

// checkData checks that the data agrees with the trail, change by change: nothing was written
// without a record, and each record had the effect that it describes.
func (x *evidence) checkData() story.Verdict {
	problems := slices.Clone(x.odd)
	recorded, keys := make(map[int64]bool), make(map[string]bool)
	before := make(map[string]string) // the values that result from the trail
	records := 0
	for _, e := range x.trail {
		if e.GetMethod() == kvpb.Record_METHOD_OPEN {
			continue
		}
		records++
		if recorded[e.Revision] {
			problems = append(problems, fmt.Sprintf("revision %d has two records", e.Revision))
		}
		recorded[e.Revision] = true
		want := datum{key: e.GetKey(), value: string(e.GetValue()), deleted: e.GetMethod() == kvpb.Record_METHOD_DELETE}
		if e.GetMethod() == kvpb.Record_METHOD_APPEND {
			want.value = before[want.key] + want.value
		}
		if got := x.data[e.Revision]; len(got) != 1 || got[0] != want {
			problems = append(problems, fmt.Sprintf("revision %d differs from its record: %v of %s", e.Revision, e.GetMethod(), e.GetKey()))
		}
		before[want.key] = want.value
	}
	for revision, written := range x.data {
		for _, d := range written {
			keys[d.key] = true
		}
		if !recorded[revision] {
			problems = append(problems, fmt.Sprintf("revision %d wrote %s without a record", revision, written[0].key))
		}
	}
	slices.Sort(problems)
	return story.Judge("the data is what the trail says", records, problems, "%s of %s", story.Count(records, "change"), story.Count(len(keys), "key"))
}

// documented are the codes with which calls of this client may end.
var documented = map[codes.Code]bool{
	codes.OK: true, codes.NotFound: true, // the service's own
	codes.Unavailable: true, codes.DeadlineExceeded: true, // no leader, or it has lost leadership
	codes.Unknown: true, // etcd's response does not show whether it was done
}

// checkAnswers checks that calls end with the documented codes.
func (x *evidence) checkAnswers() story.Verdict {
	var problems []string
	counts := make(map[codes.Code]int)
	for _, a := range x.attempts {
		counts[a.Code]++
		if !documented[a.Code] || a.Code == codes.NotFound && !a.Missing {
			problems = append(problems, fmt.Sprintf("%s (%s) ended with %s: %s", a.ID, a.Method, a.Answer, a.Text))
		}
	}
	return story.Judge("answers are the documented ones", len(x.attempts), problems, "%d OK, %d NotFound, %d Unavailable, %d DeadlineExceeded, %d Unknown",
		counts[codes.OK], counts[codes.NotFound], counts[codes.Unavailable], counts[codes.DeadlineExceeded], counts[codes.Unknown])
}

// checkForwarding checks that followers forwarded calls. (The plan itself has waited until every
// node answered each time that all nodes agreed.)
func (x *evidence) checkForwarding() story.Verdict {
	leaders := make(map[eldest.Token]string)
	agreed := 0
	for _, f := range x.facts {
		switch {
		case f.Kind == scenario.Status && f.Role == scenario.Leading:
			leaders[f.Token] = f.Participant
		case f.Kind == scenario.Settled:
			agreed++
		}
	}
	forwarded := 0
	for _, a := range x.attempts {
		if a.Method.writes() && a.Outcome == Done && leaders[a.Token] != a.Node {
			forwarded++
		}
	}
	return story.Judge("every node answers", min(forwarded, agreed), nil, "%s through a follower; all nodes answered, each of the %d times that they agreed",
		story.Count(forwarded, "acknowledged write"), agreed)
}
