package service

import (
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// Summary is what --json ends with.
type Summary struct {
	scenario.Result
	Seed uint64   `json:"seed"`
	Acts []ActRow `json:"acts"`
}

// ActRow is what one act did to the service.
type ActRow struct {
	Act      Act          `json:"act"`
	Node     string       `json:"node"`
	OldToken eldest.Token `json:"old_token"`
	// Successor and NewToken are empty and 0 where the leader stayed.
	Successor string       `json:"successor,omitempty"`
	NewToken  eldest.Token `json:"new_token,omitempty"`
	// TookMS is the time from the act to the successor's win, SilenceMS the longest
	// time in which the client had no answer from any node; both in milliseconds.
	TookMS    float64 `json:"took_ms"`
	SilenceMS float64 `json:"silence_ms"`
	// What became of the requests that were begun during the act. Refused and Open are
	// writes, Failed are reads.
	Done    int `json:"done"`
	Refused int `json:"refused"`
	Open    int `json:"open"`
	Failed  int `json:"failed"`
}

// rows renders the acts.
func rows(x *exhibits) []ActRow {
	var all []ActRow
	for _, s := range x.spans() {
		r := ActRow{
			Act: s.Act, Node: s.Node, OldToken: s.Token, SilenceMS: story.InMillis(s.silence()),
			Done:    s.count(func(a Attempt) bool { return a.Outcome == Done }),
			Refused: s.count(func(a Attempt) bool { return a.Outcome == Refused }),
			Open:    s.count(func(a Attempt) bool { return a.Outcome == Open }),
			Failed:  s.count(func(a Attempt) bool { return a.Outcome == Failed }),
		}
		if s.successor != nil {
			r.Successor, r.NewToken, r.TookMS = s.successor.Node, s.successor.Token, story.InMillis(s.successor.At.Sub(s.At))
		}
		all = append(all, r)
	}
	return all
}

func fromMillis(ms float64) string {
	return story.Millis(time.Duration(ms * float64(time.Millisecond)))
}

// words renders one act for people.
func (r ActRow) words(style story.Style) string {
	what := map[Act]string{Stop: "stopped", Kill: "was killed", Suspend: "was suspended", CutLeader: "was cut off", CutFollower: "was cut off"}[r.Act]
	change := fmt.Sprintf("%s led after %8s", r.Successor, fromMillis(r.TookMS))
	if r.Successor == "" {
		change = fmt.Sprintf("%-21s", "the leader stayed")
	}
	requests := fmt.Sprintf("requests: %3d done; writes: %2d refused, %2d open; reads: %2d failed; longest without an answer %s", r.Done, r.Refused, r.Open, r.Failed, fromMillis(r.SilenceMS))
	return fmt.Sprintf("%s %-13s %s   %s", r.Node, what, style.Paint(story.Bold, change), style.Paint(story.Dim, requests))
}

// Check audits the play.
func (s *stage) Check(facts []Fact) []story.Verdict {
	return Audit(facts, s.attempts.Facts(), s.evidence, s.cfg.limits())
}

// Summary words what was found.
func (s *stage) Summary(facts []Fact, r scenario.Result) scenario.Summary {
	sum := Summary{
		Result: r, Seed: s.cfg.Seed,
		Acts: s.reckoned(rows(exhibit(facts, s.attempts.Facts(), s.evidence))),
	}
	var lines []string
	for _, r := range sum.Acts {
		lines = append(lines, r.words(s.Style))
	}
	return scenario.Summary{
		Object: sum, Title: "Acts", Rows: lines,
		Basis: "Audited: what the client was told against everything that happened in etcd",
		Note:  fmt.Sprintf(", seed %d", sum.Seed),
	}
}

// tally keeps how the service fared in the last act, which is over, with all of its
// requests, and tells it. Before the first act there is nothing to tell.
func (s *stage) tally() {
	all := rows(exhibit(s.History.Facts(), s.attempts.Facts(), nil))
	if len(all) == 0 {
		return
	}
	row := all[len(all)-1]
	s.acts = append(s.acts, row)
	s.Say(scenario.Margin + row.words(s.Style))
}

// reckoned puts the figures that were told during the play in the place of those of the
// same acts. An act that did not come to its end has the ones that are given.
func (s *stage) reckoned(all []ActRow) []ActRow {
	copy(all, s.acts)
	return all
}
