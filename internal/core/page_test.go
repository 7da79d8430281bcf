package core_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
)

var rewrite = flag.Bool("rewrite", false, "write docs/states.md instead of comparing it")

const page = "../../docs/states.md"

// The page is made from the table, and is up to date.
func TestStatesPage(t *testing.T) {
	want := render(t)
	if *rewrite {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644)) //nolint:gosec // a page of the documentation
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "go test ./internal/core -run TestStatesPage -rewrite")
}

// representatives returns candidates in a phase for which its rules have different results.
func representatives(p core.Phase) (all []core.Candidate) {
	elder := core.Elder{Key: "older", Token: 1}
	wants := []core.Want{core.Nothing, core.Queue, core.Lead, core.LeadNow}
	switch p {
	case core.Idle, core.Lost:
		wants = wants[:1]
	case core.Waiting, core.Proving, core.Leading, core.Draining:
		wants = wants[1:]
	case core.Entering, core.Leaving:
	}
	for _, want := range wants {
		for _, doomed := range []eldest.Token{0, 5} {
			for _, flag := range []bool{false, true} {
				c := core.Candidate{Phase: p, Want: want, Doomed: doomed, Owed: flag, Unsure: flag, Beats: flag}
				if p >= core.Waiting && p <= core.Leaving {
					c.Token = 5
				}
				if p == core.Waiting && want == core.Queue {
					c.Position.Complete = true
					all = append(all, c)
				}
				if p == core.Waiting {
					c.Position.Elders = []core.Elder{elder}
				}
				all = append(all, c)
				if p == core.Leaving {
					c.Token = 0
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// events returns the events of a kind that have different results.
func events(k core.Kind) (all []core.Event) {
	tokens := []eldest.Token{5, 6}
	if k == core.Looked {
		tokens = append(tokens, 0) // there was none
	}
	for _, token := range tokens {
		for _, p := range []core.Position{{Complete: true}, {}, {Elders: []core.Elder{{Key: "older", Token: 1}}}} {
			for _, want := range []core.Want{core.Lead, core.LeadNow} {
				all = append(all, core.Event{Kind: k, Token: token, Position: p, Want: want, Err: eldest.ErrInvalid})
			}
		}
	}
	return all
}

// names returns the different values of results, in their order.
func names[T interface {
	cmp.Ordered
	fmt.Stringer
}](results []T) (names []string) {
	slices.Sort(results)
	for _, r := range slices.Compact(results) {
		names = append(names, r.String())
	}
	return names
}

// outcomes returns the phases in which a rule can end.
func outcomes(p core.Phase, k core.Kind) []string {
	var all []core.Phase
	for _, c := range representatives(p) {
		for _, e := range events(k) {
			next, _ := core.Step(c, e)
			all = append(all, next.Phase)
		}
	}
	return names(all)
}

// heartOutcomes returns the pulses in which a rule can end.
func heartOutcomes(pulse core.Pulse, k core.HeartKind) []string {
	var all []core.Pulse
	for _, tried := range []bool{false, true} {
		for _, sent := range []time.Duration{0, 9 * s} {
			h := core.Heart{Pulse: pulse, Pace: core.Pace{Every: s / 4, Timeout: s, Margin: s / 5}, Deadline: 11 * s, Next: 10 * s, Flying: 1, Tried: tried}
			next, _ := core.StepHeart(h, core.HeartEvent{Kind: k, Now: 9*s + s/2, Sent: sent})
			all = append(all, next.Pulse)
		}
	}
	return names(all)
}

// sessionOutcomes returns the stages in which a rule can end, before the deadline.
func sessionOutcomes(stage core.Stage, k core.SessionKind) []string {
	var all []core.Stage
	for _, c := range []core.Session{
		{Stage: stage, Next: 50 * s, Asked: 50 * s, Timeout: s},
		{Stage: stage, Next: 70 * s, Asked: 60*s - s/2, Timeout: s, Term: 9},
		{Stage: stage, Next: 70 * s, Asked: 60 * s, Timeout: s, Hedged: true, Failures: 1},
	} {
		c.Rhythm = core.Rhythm{TTL: 50 * s, Margin: s, Every: 20 * s, Timeout: s}
		c.Granted, c.Sent, c.Deadline = c.Rhythm, c.Asked, 100*s
		for _, term := range []uint64{0, 5} {
			for _, silent := range []error{nil, eldest.ErrUnresponsive} {
				e := core.SessionEvent{Kind: k, Now: 60 * s, Rhythm: c.Rhythm, Term: term, Silent: silent, Pause: s, Err: eldest.ErrUnavailable}
				next, _ := core.StepSession(c, e)
				all = append(all, next.Stage)
			}
		}
	}
	return names(all)
}

// text is docs/states.md while it is written.
type text struct {
	*testing.T
	strings.Builder
}

// table writes the rules of one state, one row for all neighbouring events with the same rule. rule
// returns the text and the function of the rule for an event, and the states in which it can end.
func (w *text) table(level string, state fmt.Stringer, next string, events int, rule func(k int) (event fmt.Stringer, text string, do any, ends []string)) {
	fmt.Fprintf(w, "%s %s\n\n| event | what happens | %s |\n|---|---|---|\n", level, state, next)
	row, last := "", ""
	for k := range events {
		event, text, do, ends := rule(k)
		require.NotEmpty(w, text, "%s at %s", event, state)
		require.NotNil(w, do, "%s at %s", event, state)
		rest := fmt.Sprintf(" | %s | %s |\n", text, strings.Join(ends, ", "))
		if rest == last {
			row += ", " + event.String()
			continue
		}
		w.WriteString(row + last)
		row, last = "| "+event.String(), rest
	}
	w.WriteString(row + last + "\n")
}

func render(t *testing.T) string {
	w := &text{T: t}
	w.WriteString(`# The states of a candidate, and of a session

This page is generated from the tables in internal/core ([candidates](../internal/core/table.go),
[sessions](../internal/core/sessiontable.go), [heartbeats](../internal/core/heart.go)) by its test: the code and the page cannot
differ. Each phase has a rule for each event. A candidate has one key, bound to the lease of its session.

`)
	for p, rules := range core.Table {
		w.table("##", core.Phase(p), "next phase", len(rules), func(k int) (fmt.Stringer, string, any, []string) {
			return core.Kind(k), rules[k].Text, rules[k].Do, outcomes(core.Phase(p), core.Kind(k))
		})
	}
	w.WriteString(`## Sessions

A session is the client's side of one lease. It is at risk while its last renewal has failed. Before any rule applies, each
event except Closed, Abandoned and Forfeited ends the session as lost if its deadline has passed: the clock is read before an answer is handled (G3).

`)
	for stage, rules := range core.SessionTable {
		w.table("###", core.Stage(stage), "next stage", len(rules), func(k int) (fmt.Stringer, string, any, []string) {
			return core.SessionKind(k), rules[k].Text, rules[k].Do, sessionOutcomes(core.Stage(stage), core.SessionKind(k))
		})
	}
	w.WriteString(`## Heartbeats

A session with heartbeats sends them while one of its candidates leads, proves that it does, or keeps the key with which it led. Before
any rule applies, a stretch whose deadline has passed ends, and the candidates that lead are suspended. After it, a heartbeat is sent if one is due.

`)
	for pulse, rules := range core.HeartTable {
		w.table("###", core.Pulse(pulse), "next", len(rules), func(k int) (fmt.Stringer, string, any, []string) {
			return core.HeartKind(k), rules[k].Text, rules[k].Do, heartOutcomes(core.Pulse(pulse), core.HeartKind(k))
		})
	}
	return strings.TrimSuffix(w.String(), "\n")
}
