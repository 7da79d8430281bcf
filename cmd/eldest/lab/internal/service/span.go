package service

import (
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/curator/kv"
)

// enough attempts must have been made during a fault for it to show anything.
const enough = 5

// tremor is how long after the signal a suspended process may still report something.
const tremor = 50 * time.Millisecond

// span is the time of one fault, with what belongs to it.
type span struct {
	scenario.Fact // the action
	// facts are those from the action until all agreed again; all that follow where they
	// never did.
	facts []scenario.Fact
	// settled is when all agreed again, mended when a partition was healed or the process
	// went on; zero: never.
	settled, mended time.Time
	// successor is the first to lead with a newer token; nil: nobody did.
	successor *scenario.Fact
	// attempts were begun between the action and the settling.
	attempts []Attempt
}

// spans returns the times of all faults.
func (x *evidence) spans() []*span {
	var all []*span
	for i, f := range x.facts {
		if f.Kind == scenario.Acted && isFault(f.Action) {
			all = append(all, x.span(f, x.facts[i+1:]))
		}
	}
	return all
}

func (x *evidence) span(action scenario.Fact, rest []scenario.Fact) *span {
	s := &span{Fact: action, facts: rest}
	if end := slices.IndexFunc(rest, func(f scenario.Fact) bool { return f.Kind == scenario.Settled }); end >= 0 {
		s.facts, s.settled = rest[:end], rest[end].At
	}
	for i, f := range s.facts {
		switch {
		case f.Kind == scenario.Acted && (f.Action == scenario.Mend || f.Action == Resume):
			s.mended = f.At
		case f.Kind == Status && f.Role == leading && f.Token > action.Token && s.successor == nil:
			s.successor = &s.facts[i]
		}
	}
	for _, a := range x.attempts {
		if !a.Begin.Before(action.At) && (s.settled.IsZero() || a.Begin.Before(s.settled)) {
			s.attempts = append(s.attempts, a)
		}
	}
	return s
}

// first is the first of the span's facts about its node that matches; nil: none.
func (s *span) first(match func(scenario.Fact) bool) *scenario.Fact {
	i := slices.IndexFunc(s.facts, func(f scenario.Fact) bool { return f.Participant == s.Participant && match(f) })
	if i < 0 {
		return nil
	}
	return &s.facts[i]
}

// became is when the node first reported that it neither leads nor follows, in the span.
func (s *span) lost() *scenario.Fact {
	return s.first(func(f scenario.Fact) bool { return f.Kind == Status && f.Role == neither })
}

// count is how many of the span's attempts match.
func (s *span) count(match func(Attempt) bool) int {
	n := 0
	for _, a := range s.attempts {
		if match(a) {
			n++
		}
	}
	return n
}

// checkFaults: every fault really took effect, while the client was calling. A run in
// which one did not has shown nothing, whatever else it shows.
func (x *evidence) checkFaults() story.Verdict {
	var problems []string
	seen := make(map[scenario.Action]int)
	spans := x.spans()
	for _, s := range spans {
		seen[s.Action]++
		for _, p := range x.missing(s) {
			problems = append(problems, fmt.Sprintf("INVALID: %s of %s: %s", s.Action, s.Participant, p))
		}
	}
	for _, action := range faults {
		if seen[action] == 0 {
			problems = append(problems, fmt.Sprintf("INVALID: there was no %s", action))
		}
	}
	return story.Judge("every fault took effect", len(spans), problems, "%s, %s, %s, %s and %s partitioned, while the client called",
		story.Count(seen[Stop], "stop"), story.Count(seen[scenario.Kill], "kill"), story.Count(seen[Suspend], "suspension"),
		story.Count(seen[CutLeader], "leader"), story.Count(seen[CutFollower], "follower"))
}

// missing returns what is missing of a fault's effects.
func (x *evidence) missing(s *span) (missing []string) {
	need := func(ok bool, what string) {
		if !ok {
			missing = append(missing, what)
		}
	}
	need(!s.settled.IsZero(), "the nodes never agreed again")
	need(len(s.attempts) >= enough, fmt.Sprintf("the client made only %s", story.Count(len(s.attempts), "attempt")))
	ended := s.first(func(f scenario.Fact) bool { return f.Kind == scenario.Exited })
	lost := s.lost()
	switch s.Action {
	case Stop:
		need(ended != nil && ended.Code == 0, "its process did not end by itself")
	case scenario.Kill:
		need(ended != nil && ended.Code == -1, "its process was not killed")
		need(lost == nil || ended != nil && lost.At.After(ended.At), "it reported its end")
	case Suspend:
		spoke := s.first(func(f scenario.Fact) bool {
			return f.Kind == Status && f.At.After(s.At.Add(tremor)) && (s.mended.IsZero() || f.At.Before(s.mended))
		})
		need(spoke == nil, "it went on")
		need(s.successor != nil && s.successor.At.Before(s.mended), "it was not suspended until another one led")
		need(s.count(func(a Attempt) bool {
			return a.Node == s.Participant && s.successor != nil && a.Begin.After(s.successor.At) && a.Begin.Before(s.mended) && a.At.After(s.mended)
		}) > 0, "no call waited for it to go on")
	case CutLeader, CutFollower:
		cut := s.first(func(f scenario.Fact) bool { return f.Kind == Probed && !f.OK })
		whole := s.first(func(f scenario.Fact) bool { return f.Kind == Probed && f.OK })
		need(cut != nil && (s.mended.IsZero() || !cut.At.After(s.mended)) && (whole == nil || whole.At.After(cut.At)),
			"its member went on as a part of the cluster")
		need(!s.mended.IsZero() && whole != nil && !whole.At.Before(s.mended), "its member was not joined again")
		need(lost != nil && !s.mended.IsZero() && !lost.At.After(s.mended), "it did not notice")
	}
	if s.Action != CutFollower {
		need(x.went(s), "its key did not go before its successor began")
		need(s.successor != nil, "nobody succeeded it")
	}
	if s.Action != Stop { // which is made to be noticed as little as possible
		need(s.count(func(a Attempt) bool { return a.Outcome != Done && (s.Action != CutFollower || a.Node == s.Participant) }) > 0,
			"no call failed for it")
	}
	return missing
}

// went reports whether the key of a fault's tenure was deleted before the next tenure's
// first record.
func (x *evidence) went(s *span) bool {
	next := slices.IndexFunc(x.trail, func(e kv.Entry) bool { return eldest.Token(e.GetToken()) > s.Token })
	born := false
	for _, c := range x.candidates {
		switch {
		case string(c.Kv.Key) != s.Key:
		case c.Kv.ModRevision == int64(s.Token):
			born = true
		case born && c.Type == clientv3.EventTypeDelete:
			return next >= 0 && c.Kv.ModRevision < x.trail[next].Revision
		}
	}
	return false
}

// checkReturn: after each fault the service is back in time.
func (x *evidence) checkReturn(cfg Config) story.Verdict {
	var problems []string
	spans := x.spans()
	for _, s := range spans {
		complain := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("%s of %s: %s", s.Action, s.Participant, fmt.Sprintf(format, args...)))
		}
		lost := s.lost()
		if s.Action == CutFollower {
			if s.successor != nil {
				complain("%s leads with token %d, though nothing had happened to the leader", s.successor.Participant, s.successor.Token)
			}
			if lost != nil && lost.At.Sub(s.At) > cfg.certain() {
				complain("it knew whom to follow for %s, longer than %v", story.Millis(lost.At.Sub(s.At)), cfg.certain())
			}
			continue
		}
		limit := cfg.Expiry()
		if s.Action == Stop || s.Action == Suspend { // etcd is told
			limit = cfg.Told()
		}
		served := s.count(func(a Attempt) bool {
			return a.Method.writes() && a.Outcome == Done && a.Token > s.Token && a.At.Sub(s.At) <= limit
		})
		follows := s.first(func(f scenario.Fact) bool {
			return f.Kind == Status && f.Role == following && f.Token > s.Token && !s.mended.IsZero() && f.At.After(s.mended)
		})
		switch {
		case s.successor == nil:
			complain("nobody succeeded it")
		case s.successor.At.Sub(s.At) > limit:
			complain("%s leads after %s, later than %v", s.successor.Participant, story.Millis(s.successor.At.Sub(s.At)), limit)
		case served == 0:
			complain("no write was acknowledged within %v", limit)
		case s.Action == CutLeader && (lost == nil || lost.At.After(s.successor.At)):
			complain("it led until after %s did", s.successor.Participant)
		case (s.Action == CutLeader || s.Action == Suspend) && follows == nil:
			complain("it did not follow its successor afterwards")
		}
	}
	return story.Judge("the service comes back in time", len(spans), problems, "%s", story.Count(len(spans), "fault"))
}

// Row is what one fault did to the service.
type Row struct {
	Action   scenario.Action `json:"action"`
	Node     string          `json:"node"`
	OldToken eldest.Token    `json:"old_token"`
	// Successor and NewToken are empty and 0 where the leader stayed.
	Successor string       `json:"successor,omitempty"`
	NewToken  eldest.Token `json:"new_token,omitempty"`
	// TookMS is the time from the action to the successor's win, SilenceMS the longest
	// time in which the client had no answer from any node; both in milliseconds.
	TookMS    float64 `json:"took_ms"`
	SilenceMS float64 `json:"silence_ms"`
	// What became of the calls that were begun during the fault. Refused and Open are
	// writes, Failed are reads.
	Done    int `json:"done"`
	Refused int `json:"refused"`
	Open    int `json:"open"`
	Failed  int `json:"failed"`
}

// row sums a fault up, when all have agreed again.
func (s *span) row() Row {
	of := func(o Outcome) int { return s.count(func(a Attempt) bool { return a.Outcome == o }) }
	r := Row{Action: s.Action, Node: s.Participant, OldToken: s.Token, Done: of(Done), Refused: of(Refused), Open: of(Open), Failed: of(Failed)}
	if s.successor != nil {
		r.Successor, r.NewToken, r.TookMS = s.successor.Participant, s.successor.Token, story.InMillis(s.successor.At.Sub(s.At))
	}
	longest, since := time.Duration(0), s.At
	for _, a := range s.attempts { // in the order of their ends
		if a.Outcome == Done && a.At.Before(s.settled) {
			longest, since = max(longest, a.At.Sub(since)), a.At
		}
	}
	r.SilenceMS = story.InMillis(max(longest, s.settled.Sub(since)))
	return r
}

// words is a row for people.
func (r Row) words(style story.Style) string {
	what := map[scenario.Action]string{
		Stop: "stopped", scenario.Kill: "was killed", Suspend: "was suspended", CutLeader: "was partitioned", CutFollower: "was partitioned",
	}[r.Action]
	millis := func(ms float64) string { return story.Millis(time.Duration(ms * float64(time.Millisecond))) }
	change := fmt.Sprintf("%s led after %8s", r.Successor, millis(r.TookMS))
	if r.Successor == "" {
		change = fmt.Sprintf("%-21s", "the leader stayed")
	}
	calls := fmt.Sprintf("calls: %3d done; writes: %2d refused, %2d open; reads: %2d failed; longest without an answer %s", r.Done, r.Refused, r.Open, r.Failed, millis(r.SilenceMS))
	return fmt.Sprintf("%s %-15s %s   %s", r.Node, what, style.Paint(story.Bold, change), style.Paint(story.Dim, calls))
}
