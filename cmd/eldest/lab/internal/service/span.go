package service

import (
	"fmt"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// enough is how many attempts must have been made during a fault for it to show anything.
const enough = 5

// faults are the actions that count as faults.
var faults = []scenario.Action{scenario.Resign, scenario.Kill, scenario.Suspend, scenario.Cut, scenario.CutFollower}

func isFault(a scenario.Action) bool { return slices.Contains(faults, a) }

// span is the time of one fault, from the action until all nodes agreed again.
type span struct {
	scenario.Fact // the action
	settled       time.Time
	attempts      []Attempt // that began in it
}

func (x *evidence) spans() []*span {
	var all []*span
	for i, f := range x.facts {
		end := slices.IndexFunc(x.facts[i:], func(f scenario.Fact) bool { return f.Kind == scenario.Settled })
		if end < 0 || f.Kind != scenario.Acted || !isFault(f.Action) {
			continue
		}
		s := &span{Fact: f, settled: x.facts[i+end].At}
		for _, a := range x.attempts {
			if !a.Begin.Before(f.At) && a.Begin.Before(s.settled) {
				s.attempts = append(s.attempts, a)
			}
		}
		all = append(all, s)
	}
	return all
}

func (s *span) count(match func(Attempt) bool) int {
	n := 0
	for _, a := range s.attempts {
		if match(a) {
			n++
		}
	}
	return n
}

// checkFaults checks that each fault occurred, and that calls failed while the client made them.
// (The plan itself has waited until it took effect.) A run without a fault has shown nothing.
func (x *evidence) checkFaults() story.Verdict {
	var problems []string
	seen := make(map[scenario.Action]int)
	spans := x.spans()
	for _, s := range spans {
		seen[s.Action]++
		lack := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("INVALID: %s of %s: %s", s.Action, s.Participant, fmt.Sprintf(format, args...)))
		}
		if len(s.attempts) < enough {
			lack("the client made only %s", story.Count(len(s.attempts), "attempt"))
		}
		// A resignation is meant to disturb calls as little as possible.
		failed := func(a Attempt) bool {
			return a.Outcome != Done && (s.Action != scenario.CutFollower || a.Node == s.Participant)
		}
		if s.Action != scenario.Resign && s.count(failed) == 0 {
			lack("no call failed because of it")
		}
	}
	for _, action := range faults {
		if seen[action] == 0 {
			problems = append(problems, fmt.Sprintf("INVALID: there was no %s", action))
		}
	}
	return story.Judge("every fault took effect", len(spans), problems, "%s, %s, %s, %s and %s partitioned, while the client called",
		story.Count(seen[scenario.Resign], "stop"), story.Count(seen[scenario.Kill], "kill"), story.Count(seen[scenario.Suspend], "suspension"),
		story.Count(seen[scenario.Cut], "leader"), story.Count(seen[scenario.CutFollower], "follower"))
}

// checkReturn checks that the service is back in time after each fault, and no leader is lost without one.
func (x *evidence) checkReturn(h *oracle.History, cfg Config) story.Verdict {
	problems := story.Texts(oracle.InTime(h), oracle.I1(h))
	for _, c := range scenario.Handovers(x.facts) {
		if c.Action == "" {
			problems = append(problems, fmt.Sprintf("%s leads with token %d although there was no fault of the leader, %s", c.To, c.NewToken, c.From))
		}
	}
	spans := x.spans()
	for _, s := range spans {
		if limit := cfg.Limit(s.Action); s.Action.Deposes() && s.count(func(a Attempt) bool {
			return a.Method.writes() && a.Outcome == Done && a.Token > s.Token && a.At.Sub(s.At) <= limit
		}) == 0 {
			problems = append(problems, fmt.Sprintf("%s of %s: no write was acknowledged within %v", s.Action, s.Participant, limit))
		}
		lost := slices.IndexFunc(x.facts, func(f scenario.Fact) bool {
			return f.Kind == scenario.Status && f.Participant == s.Participant && f.Role == unknown && f.At.After(s.At)
		})
		if s.Action == scenario.CutFollower && lost >= 0 && x.facts[lost].At.Sub(s.At) > cfg.certain() {
			problems = append(problems, fmt.Sprintf("%s of %s: it followed for %s, longer than %v",
				s.Action, s.Participant, story.Millis(x.facts[lost].At.Sub(s.At)), cfg.certain()))
		}
	}
	return story.Judge("the service comes back in time", len(spans), problems, "%s", story.Count(len(spans), "fault"))
}

// Row is the effect of one fault on the service. If the leader stayed, the hand-over has only From.
type Row struct {
	scenario.Handover
	// SilenceMS is the longest time in which the client had no answer from any node, in milliseconds.
	SilenceMS float64 `json:"silence_ms"`
	// The results of the calls that began during the fault. Refused and Open are writes, Failed are
	// reads.
	Done    int `json:"done"`
	Refused int `json:"refused"`
	Open    int `json:"open"`
	Failed  int `json:"failed"`
}

// row summarizes the last fault, when all nodes have agreed again; ok is false if there was none.
func (x *evidence) row() (r Row, ok bool) {
	spans := x.spans()
	if len(spans) == 0 {
		return r, false
	}
	s := spans[len(spans)-1]
	r.Handover = scenario.Handover{Action: s.Action, From: s.Participant, OldToken: s.Token}
	for _, c := range scenario.Handovers(x.facts) {
		if c.OldToken == s.Token && s.Action.Deposes() {
			r.Handover = c
		}
	}
	of := func(o Outcome) int { return s.count(func(a Attempt) bool { return a.Outcome == o }) }
	r.Done, r.Refused, r.Open, r.Failed = of(Done), of(Refused), of(Open), of(Failed)
	longest, since := time.Duration(0), s.At
	for _, a := range s.attempts { // in the order of their ends
		if a.Outcome == Done && a.At.Before(s.settled) {
			longest, since = max(longest, a.At.Sub(since)), a.At
		}
	}
	r.SilenceMS = story.InMillis(max(longest, s.settled.Sub(since)))
	return r, true
}

// words formats a row as text.
func (r Row) words(style story.Style) string {
	what := map[scenario.Action]string{scenario.Resign: "stopped", scenario.Kill: "was killed", scenario.Suspend: "was suspended"}[r.Action]
	if what == "" {
		what = "was partitioned"
	}
	change := fmt.Sprintf("%s led after %8s", r.To, story.Millis(r.Took))
	if r.To == "" {
		change = fmt.Sprintf("%-21s", "the leader stayed")
	}
	calls := fmt.Sprintf("calls: %3d done; writes: %2d refused, %2d open; reads: %2d failed; longest without an answer %s",
		r.Done, r.Refused, r.Open, r.Failed, story.Millis(time.Duration(r.SilenceMS*float64(time.Millisecond))))
	return fmt.Sprintf("%s %-15s %s   %s", r.From, what, style.Paint(story.Bold, change), style.Paint(story.Dim, calls))
}
