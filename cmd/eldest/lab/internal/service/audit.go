package service

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
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
	exited := x.number(scenario.Exited)
	return append(x.checkAttempts(h),
		x.checkAnswers(),
		x.checkForwarding(),
		x.checkFaults(),
		x.checkReturn(h, cfg),
		story.Judge("nothing is left", min(exited, x.number(scenario.Left)), story.Texts(oracle.Exits(h), oracle.Leftovers(h)),
			"%s ended as expected; no candidate and no lease is left in etcd", story.Count(exited, "process")),
	)
}

// AuditAttempts is the part of Audit that needs no demo: whether the responses to clients agree
// with all changes that ever happened in etcd (see Changes).
func AuditAttempts(attempts []Attempt, changes []Change) []story.Verdict {
	x := newEvidence(nil, attempts, changes)
	return x.checkAttempts(x.history(Config{}))
}

// count returns how many elements match.
func count[E any](all []E, match func(E) bool) (n int) {
	for _, e := range all {
		if match(e) {
			n++
		}
	}
	return n
}

// number returns how many facts are of a kind.
func (x *evidence) number(kind scenario.Kind) int {
	return count(x.facts, func(f scenario.Fact) bool { return f.Kind == kind })
}

// checkAttempts names the rules and counts what was judged.
func (x *evidence) checkAttempts(h *oracle.History) []story.Verdict {
	applied := make(map[string]bool)
	for _, w := range x.writes {
		applied[w.id] = true
	}
	n := make(map[Outcome]int) // of writes
	for _, a := range x.attempts {
		if a.Method != Get {
			n[a.Outcome]++
		}
	}
	reads := count(x.attempts, Attempt.reads)
	vain := count(x.attempts, func(a Attempt) bool { return a.Missing && a.Method == Delete })
	asked := count(x.attempts, func(a Attempt) bool { return applied[a.ID] })
	open := count(x.attempts, func(a Attempt) bool { return applied[a.ID] && a.Outcome == Open })
	records := count(x.changes, func(c oracle.Change) bool { return c.Holder != "" })
	opened := count(x.changes, func(c oracle.Change) bool { return c.Opens })
	return []story.Verdict{
		story.Judge("no acknowledged write is lost", n[Done], story.Texts(oracle.Kept(h)), "%s, each with its record", story.Count(n[Done], "acknowledged write")),
		story.Judge("no attempt is applied twice", len(applied), story.Texts(oracle.Once(h)), "%s applied; of %d without a certain answer %d were",
			story.Count(len(applied), "attempt"), n[Open], open),
		story.Judge("no refused write is applied", n[Refused], story.Texts(oracle.Refusals(h)), "%s", story.Count(n[Refused], "refused write")),
		story.Judge("no write of a deposed leader", records, story.Texts(oracle.Rising(h), oracle.I2(h)), "%s in %s, each by the leader one revision before",
			story.Count(records, "record"), story.Count(opened, "tenure")),
		x.checkData(),
		story.Judge("no read is stale", reads, story.Texts(oracle.Fresh(h)), "%s, with %s of what was not there", story.Count(reads, "read"), story.Count(vain, "delete")),
		story.Judge("no write precedes its request", asked, story.Texts(oracle.Sequence(h)), "%s, each later than all revisions that were known at its request",
			story.Count(asked, "write")),
	}
}

// checkData checks that the data agrees with the trail, change by change (newEvidence has compared
// them): nothing was written without a record, and each record had the effect that it describes.
func (x *evidence) checkData() story.Verdict {
	keys := make(map[string]bool)
	for _, w := range x.writes {
		keys[w.key] = true
	}
	return story.Judge("the data is what the trail says", len(x.writes), x.odd, "%s of %s", story.Count(len(x.writes), "change"), story.Count(len(keys), "key"))
}

// checkAnswers checks that calls end with the documented codes.
func (x *evidence) checkAnswers() story.Verdict {
	var problems []string
	n := make(map[codes.Code]int)
	for _, a := range x.attempts {
		n[a.Code]++
		if !a.Documented() {
			problems = append(problems, fmt.Sprintf("%s (%s) ended with %s: %s", a.ID, a.Method, a.Answer, a.Text))
		}
	}
	return story.Judge("answers are the documented ones", len(x.attempts), problems, "%d OK, %d NotFound, %d Unavailable, %d DeadlineExceeded, %d Unknown",
		n[codes.OK], n[codes.NotFound], n[codes.Unavailable], n[codes.DeadlineExceeded], n[codes.Unknown])
}

// checkForwarding checks that followers forwarded calls. (The plan itself has waited until every
// node answered, each time that all nodes agreed.)
func (x *evidence) checkForwarding() story.Verdict {
	agreed := x.number(scenario.Settled)
	leaders := make(map[eldest.Token]string)
	for _, f := range x.facts {
		if f.Kind == scenario.Status && f.Role == scenario.Leading {
			leaders[f.Token] = f.Participant
		}
	}
	forwarded := count(x.attempts, func(a Attempt) bool { return a.Method != Get && a.Outcome == Done && leaders[a.Token] != a.Node })
	return story.Judge("every node answers", min(forwarded, agreed), nil, "%s through a follower; all nodes answered, each of the %d times that they agreed",
		story.Count(forwarded, "acknowledged write"), agreed)
}

// checkFaults checks that each fault occurred, and that the client noticed it. (The plan itself has
// waited until it took effect.) A run without a fault has shown nothing.
func (x *evidence) checkFaults() story.Verdict {
	var problems []string
	all, n := x.faults(), make(map[scenario.Action]int)
	for _, f := range all {
		n[f.Action]++
		if lack := f.unnoticed(); lack != "" {
			problems = append(problems, fmt.Sprintf("INVALID: %v: %s", f, lack))
		}
	}
	for _, action := range faults {
		if n[action] == 0 {
			problems = append(problems, fmt.Sprintf("INVALID: there was no %s", action))
		}
	}
	return story.Judge("every fault took effect", len(all), problems, "%s, %s, %s, %s and %s partitioned, while the client called",
		story.Count(n[scenario.Resign], "stop"), story.Count(n[scenario.Kill], "kill"), story.Count(n[scenario.Suspend], "suspension"),
		story.Count(n[scenario.Cut], "leader"), story.Count(n[scenario.CutFollower], "follower"))
}

// checkReturn checks that the service is back in time after each fault, and no leader is lost without one.
func (x *evidence) checkReturn(h *oracle.History, cfg Config) story.Verdict {
	problems := story.Texts(oracle.InTime(h), oracle.I1(h))
	for _, c := range scenario.Handovers(x.facts) {
		if c.Action == "" {
			problems = append(problems, fmt.Sprintf("%s leads with token %d although there was no fault of the leader, %s", c.To, c.NewToken, c.From))
		}
	}
	all := x.faults()
	for _, f := range all {
		limit := cfg.Limit(f.Action)
		if f.Action.Deposes() && count(f.attempts, func(a Attempt) bool { return f.served(a) && a.At.Sub(f.At) <= limit }) == 0 {
			problems = append(problems, fmt.Sprintf("%v: no write was acknowledged within %v", f, limit))
		}
		lost := slices.IndexFunc(x.facts, func(s scenario.Fact) bool {
			return s.Kind == scenario.Status && s.Participant == f.Participant && s.Role == unknown && s.At.After(f.At)
		})
		if f.Action != scenario.CutFollower || lost < 0 {
			continue
		}
		// It may rely on its lease, which may be renewed until its member has detected that it has lost etcd's leader.
		if followed, limit := x.facts[lost].At.Sub(f.At), cfg.TTL+scenario.Election; followed > limit {
			problems = append(problems, fmt.Sprintf("%v: it followed for %s, longer than %v", f, story.Millis(followed), limit))
		}
	}
	return story.Judge("the service comes back in time", len(all), problems, "%s", story.Count(len(all), "fault"))
}
