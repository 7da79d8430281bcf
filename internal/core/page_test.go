package core_test

import (
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

// outcomes returns the phases in which a rule can end.
func outcomes(p core.Phase, k core.Kind) (all []core.Phase) {
	for _, c := range representatives(p) {
		for _, e := range events(k) {
			next, _ := core.Step(c, e)
			if !slices.Contains(all, next.Phase) {
				all = append(all, next.Phase)
			}
		}
	}
	slices.Sort(all)
	return all
}

// rows writes the rows of one table, one row for all neighbouring events with the same rule.
type rows struct {
	b         *strings.Builder
	row, last string
}

func (r *rows) add(event fmt.Stringer, rule string, next []string) {
	rest := fmt.Sprintf(" | %s | %s |\n", rule, strings.Join(next, ", "))
	if rest == r.last {
		r.row += ", " + event.String()
		return
	}
	r.b.WriteString(r.row + r.last)
	r.row, r.last = "| "+event.String(), rest
}

func (r *rows) end() { r.b.WriteString(r.row + r.last + "\n") }

func render(t *testing.T) string {
	var b strings.Builder
	b.WriteString(`# The states of a candidate, and of a session

This page is generated from the tables in internal/core ([candidates](../internal/core/table.go),
[sessions](../internal/core/sessiontable.go), [heartbeats](../internal/core/heart.go)) by its test: the code and the page cannot
differ. Each phase has a rule for each event. A candidate has one key, bound to the lease of its session.

`)
	for p, rules := range core.Table {
		p := core.Phase(p)
		fmt.Fprintf(&b, "## %s\n\n| event | what happens | next phase |\n|---|---|---|\n", p)
		rows := rows{b: &b}
		for k, rule := range rules {
			k := core.Kind(k)
			require.NotEmpty(t, rule.Text, "%s at %s", k, p)
			require.NotNil(t, rule.Do, "%s at %s", k, p)
			var next []string
			for _, o := range outcomes(p, k) {
				next = append(next, o.String())
			}
			rows.add(k, rule.Text, next)
		}
		rows.end()
	}
	sessions(t, &b)
	hearts(t, &b)
	return strings.TrimSuffix(b.String(), "\n")
}

// sessions writes the table of sessions.
func sessions(t *testing.T, b *strings.Builder) {
	b.WriteString(`## Sessions

A session is the client's side of one lease. It is at risk while its last renewal has failed. Before any rule applies, each
event except Closed, Abandoned and Forfeited ends the session as lost if its deadline has passed: the clock is read before an answer is handled (G3).

`)
	for stage, rules := range core.SessionTable {
		stage := core.Stage(stage)
		fmt.Fprintf(b, "### %s\n\n| event | what happens | next stage |\n|---|---|---|\n", stage)
		rows := rows{b: b}
		for k, rule := range rules {
			k := core.SessionKind(k)
			require.NotEmpty(t, rule.Text, "%s at %s", k, stage)
			require.NotNil(t, rule.Do, "%s at %s", k, stage)
			rows.add(k, rule.Text, sessionOutcomes(stage, k))
		}
		rows.end()
	}
}

// hearts writes the table of heartbeats.
func hearts(t *testing.T, b *strings.Builder) {
	b.WriteString(`## Heartbeats

A session with heartbeats sends them while one of its candidates leads, proves that it does, or keeps the key with which it led. Before
any rule applies, a stretch whose deadline has passed ends, and the candidates that lead are suspended. After it, a heartbeat is sent if one is due.

`)
	for pulse, rules := range core.HeartTable {
		pulse := core.Pulse(pulse)
		fmt.Fprintf(b, "### %s\n\n| event | what happens | next |\n|---|---|---|\n", pulse)
		rows := rows{b: b}
		for k, rule := range rules {
			k := core.HeartKind(k)
			require.NotEmpty(t, rule.Text, "%s at %s", k, pulse)
			require.NotNil(t, rule.Do, "%s at %s", k, pulse)
			rows.add(k, rule.Text, heartOutcomes(pulse, k))
		}
		rows.end()
	}
}

// heartOutcomes returns the pulses in which a rule can end.
func heartOutcomes(pulse core.Pulse, k core.HeartKind) (names []string) {
	var all []core.Pulse
	for _, tried := range []bool{false, true} {
		for _, sent := range []time.Duration{0, 9 * s} {
			h := core.Heart{Pulse: pulse, Pace: core.Pace{Every: s / 4, Timeout: s, Margin: s / 5}, Deadline: 11 * s, Next: 10 * s, Flying: 1, Tried: tried}
			next, _ := core.StepHeart(h, core.HeartEvent{Kind: k, Now: 9*s + s/2, Sent: sent})
			all = append(all, next.Pulse)
		}
	}
	slices.Sort(all)
	for _, o := range slices.Compact(all) {
		names = append(names, o.String())
	}
	return names
}

// sessionOutcomes returns the stages in which a rule can end, before the deadline.
func sessionOutcomes(stage core.Stage, k core.SessionKind) (names []string) {
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
	slices.Sort(all)
	for _, o := range slices.Compact(all) {
		names = append(names, o.String())
	}
	return names
}
