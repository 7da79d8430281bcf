package service

import (
	"fmt"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// faults are the actions that count as faults.
var faults = []scenario.Action{scenario.Resign, scenario.Kill, scenario.Suspend, scenario.Cut, scenario.CutFollower}

// fault is one fault, from the action until all nodes agreed again.
type fault struct {
	scenario.Fact // the action
	settled       time.Time
	attempts      []Attempt // that began in it
}

func (f *fault) String() string { return fmt.Sprintf("%s of %s", f.Action, f.Participant) }

// faults returns the faults after which all nodes agreed again.
func (x *evidence) faults() (all []*fault) {
	for i, f := range x.facts {
		end := slices.IndexFunc(x.facts[i:], func(f scenario.Fact) bool { return f.Kind == scenario.Settled })
		if f.Kind == scenario.Acted && slices.Contains(faults, f.Action) && end >= 0 {
			settled := x.facts[i+end].At
			all = append(all, &fault{f, settled, begun(x.attempts, f.At, settled)})
		}
	}
	return all
}

// begun returns the attempts that began between two instants. It allocates for these alone: a run may
// have thousands of faults, and a million attempts.
func begun(attempts []Attempt, from, till time.Time) (some []Attempt) {
	for i := range attempts {
		if a := &attempts[i]; !a.Begin.Before(from) && a.Begin.Before(till) {
			some = append(some, *a)
		}
	}
	return some
}

// enough is how many attempts must have been made during a fault for it to show anything.
const enough = 5

// unnoticed returns what the client did not notice of the fault; "" if it noticed it. A resignation
// is meant to disturb calls as little as possible.
func (f *fault) unnoticed() string {
	failed := count(f.attempts, func(a Attempt) bool {
		return a.hampered() && (f.Action != scenario.CutFollower || a.Node == f.Participant)
	})
	switch {
	case len(f.attempts) < enough:
		return "the client made only " + story.Count(len(f.attempts), "attempt")
	case f.Action != scenario.Resign && failed == 0:
		return "no call failed because of it"
	}
	return ""
}

// served reports whether a write was acknowledged by a successor of the leader.
func (f *fault) served(a Attempt) bool {
	return a.Method != Get && a.Outcome == Done && a.Token > f.Token
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

// rows summarizes all faults.
func (x *evidence) rows() (rows []Row) {
	handovers := scenario.Handovers(x.facts)
	for _, f := range x.faults() {
		r := Row{Handover: scenario.Handover{Action: f.Action, From: f.Participant, OldToken: f.Token}}
		for _, c := range handovers {
			if c.OldToken == f.Token && f.Action.Deposes() {
				r.Handover = c
			}
		}
		of := func(o Outcome) int { return count(f.attempts, func(a Attempt) bool { return a.Outcome == o }) }
		r.Done, r.Refused, r.Open, r.Failed = of(Done), of(Refused), of(Open), of(Failed)
		longest, since := time.Duration(0), f.At
		for _, a := range f.attempts { // in the order of their ends
			if !a.hampered() && a.At.Before(f.settled) {
				longest, since = max(longest, a.At.Sub(since)), a.At
			}
		}
		r.SilenceMS = story.InMillis(max(longest, f.settled.Sub(since)))
		rows = append(rows, r)
	}
	return rows
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
