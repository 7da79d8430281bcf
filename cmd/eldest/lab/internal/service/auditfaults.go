package service

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/curator/kv"
)

// enough attempts must have been made during an act for it to show anything.
const enough = 5

// tremor is how long after the signal a process may still be heard of.
const tremor = 50 * time.Millisecond

// checkFaults: every fault really took effect, while the client was asking. A run in
// which one did not has shown nothing, whatever else it shows.
func (x *exhibits) checkFaults() story.Verdict {
	var problems []string
	seen := make(map[Act]int)
	spans := x.spans()
	for _, s := range spans {
		seen[s.Act]++
		for _, p := range x.effects(s) {
			problems = append(problems, fmt.Sprintf("INVALID: %s of %s: %s", s.Act, s.Node, p))
		}
	}
	for _, act := range []Act{Stop, Kill, Suspend, CutLeader, CutFollower} {
		if seen[act] == 0 && (act != Suspend || offspring.Suspends) {
			problems = append(problems, fmt.Sprintf("INVALID: there was no %s", act))
		}
	}
	return story.Judge("every fault took effect", len(spans), problems, "%s, %s, %s, %s and %s cut off, while the client asked",
		story.Count(seen[Stop], "stop"), story.Count(seen[Kill], "kill"), story.Count(seen[Suspend], "suspension"),
		story.Count(seen[CutLeader], "leader"), story.Count(seen[CutFollower], "follower"))
}

// effects returns what is missing of an act's effects.
func (x *exhibits) effects(s *span) (missing []string) {
	need := func(ok bool, what string) {
		if !ok {
			missing = append(missing, what)
		}
	}
	need(!s.settled.IsZero(), "the nodes never agreed again")
	need(len(s.attempts) >= enough, fmt.Sprintf("the client made only %s", story.Count(len(s.attempts), "attempt")))
	ended := s.first(func(f Fact) bool { return f.Kind == Exited })
	switch s.Act {
	case Stop:
		need(ended != nil && ended.Code == 0, "its process did not end by itself")
	case Kill:
		need(ended != nil && ended.Code == -1, "its process was not killed")
		gone := s.became(neither)
		need(gone == nil || ended != nil && gone.At.After(ended.At), "it said good-bye")
	case Suspend:
		spoke := s.first(func(f Fact) bool {
			return f.Kind == Status && f.At.After(s.At.Add(tremor)) && (s.mended.IsZero() || f.At.Before(s.mended))
		})
		need(spoke == nil, "it went on")
		need(s.successor != nil && s.successor.At.Before(s.mended), "it was not suspended until another one led")
		need(s.count(func(a Attempt) bool {
			return a.Node == s.Node && s.successor != nil && a.Begin.After(s.successor.At) && a.Begin.Before(s.mended) && a.At.After(s.mended)
		}) > 0, "no request waited for it to wake up")
	case CutLeader, CutFollower:
		cut := s.first(func(f Fact) bool { return f.Kind == Probed && !f.OK })
		whole := s.first(func(f Fact) bool { return f.Kind == Probed && f.OK })
		need(cut != nil && (s.mended.IsZero() || !cut.At.After(s.mended)) && (whole == nil || whole.At.After(cut.At)),
			"its member went on as a part of the cluster")
		need(!s.mended.IsZero() && whole != nil && !whole.At.Before(s.mended), "its member was not joined again")
		gone := s.became(neither)
		need(gone != nil && !s.mended.IsZero() && !gone.At.After(s.mended), "it did not notice")
	}
	if s.Act.changes() {
		need(x.went(s), "its key did not go before its successor began")
		need(s.successor != nil, "nobody succeeded it")
	}
	if s.Act != Stop { // which is made to be noticed as little as possible
		need(s.count(func(a Attempt) bool { return a.Outcome != Done && (s.Act != CutFollower || a.Node == s.Node) }) > 0,
			"no request failed for it")
	}
	return missing
}

// went reports whether the key of an act's tenure was deleted before the next tenure's
// first record.
func (x *exhibits) went(s *span) bool {
	next := slices.IndexFunc(x.trail, func(e kv.Entry) bool { return eldest.Token(e.GetToken()) > s.Token })
	born := slices.IndexFunc(x.candidates, func(c Change) bool { return c.Key == s.Key && c.Revision == int64(s.Token) })
	return next >= 0 && born >= 0 && slices.ContainsFunc(x.candidates[born:], func(c Change) bool {
		return c.Key == s.Key && c.Deleted && c.Revision < x.trail[next].Revision
	})
}

// checkReturn: after each act the service is back in time.
func (x *exhibits) checkReturn(limits Limits) story.Verdict {
	var problems []string
	spans := x.spans()
	for _, s := range spans {
		complain := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("%s of %s: %s", s.Act, s.Node, fmt.Sprintf(format, args...)))
		}
		gone := s.became(neither)
		if s.Act == CutFollower {
			if s.successor != nil {
				complain("%s leads with token %d, though nothing had happened to the leader", s.successor.Node, s.successor.Token)
			}
			if gone != nil && gone.At.Sub(s.At) > limits.Certain {
				complain("it knew whom to follow for %s, longer than %v", story.Millis(gone.At.Sub(s.At)), limits.Certain)
			}
			continue
		}
		limit := limits.Expiry
		if s.Act == Stop || s.Act == Suspend { // etcd is told
			limit = limits.Told
		}
		switch served := s.served(); {
		case s.successor == nil:
			complain("nobody succeeded it")
		case s.successor.At.Sub(s.At) > limit:
			complain("%s leads after %s, later than %v", s.successor.Node, story.Millis(s.successor.At.Sub(s.At)), limit)
		case served == nil || served.At.Sub(s.At) > limit:
			complain("no write was acknowledged within %v", limit)
		case s.Act == CutLeader && (gone == nil || gone.At.After(s.successor.At)):
			complain("it led until after %s did", s.successor.Node)
		case (s.Act == CutLeader || s.Act == Suspend) && !s.came():
			complain("it did not follow its successor afterwards")
		}
	}
	return story.Judge("the service comes back in time", len(spans), problems, "%s", story.Count(len(spans), "act"))
}

// came reports whether the node followed a newer tenure after the healing.
func (s *span) came() bool {
	return s.first(func(f Fact) bool {
		return f.Kind == Status && f.Role == following && f.Token > s.Token && !s.mended.IsZero() && f.At.After(s.mended)
	}) != nil
}

// documented are the codes with which requests of this client may end.
var documented = map[codes.Code]bool{
	codes.OK: true, codes.NotFound: true, // the service's own
	codes.Unavailable: true, codes.DeadlineExceeded: true, // no leader, or not any more
	codes.Unknown: true, // etcd did not say whether it was done
}

// checkAnswers: requests end with the codes that the documentation names.
func (x *exhibits) checkAnswers() story.Verdict {
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

// checkForwarding: whenever all agreed, every node answered.
func (x *exhibits) checkForwarding() story.Verdict {
	var problems []string
	leaders := x.leaders()
	forwarded := 0
	for _, a := range x.attempts {
		if a.Method.writes() && a.Outcome == Done && leaders[a.Token] != a.Node {
			forwarded++
		}
	}
	agreed := 0
	for i, f := range x.facts {
		if f.Kind != Settled {
			continue
		}
		agreed++
		answered := make(map[string]bool)
		end := nextAct(x.facts[i+1:])
		for _, a := range x.attempts {
			if a.Outcome == Done && !a.Begin.Before(f.At) && (end == nil || a.Begin.Before(end.At)) {
				answered[a.Node] = true
			}
		}
		if len(answered) < nodes {
			problems = append(problems, fmt.Sprintf("when all agreed on token %d, only %s answered", f.Token, story.Count(len(answered), "node")))
		}
	}
	return story.Judge("every node answers", min(forwarded, agreed), problems, "%s through a follower; all nodes answered each of %d times that they agreed",
		story.Count(forwarded, "acknowledged write"), agreed)
}

// nextAct is the first act in the facts.
func nextAct(facts []Fact) *Fact {
	for i, f := range facts {
		if f.Kind == Acted && (f.Act.main() || f.Act == Leave) {
			return &facts[i]
		}
	}
	return nil
}
