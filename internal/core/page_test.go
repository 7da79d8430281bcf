package core_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
)

var rewrite = flag.Bool("rewrite", false, "write docs/states.md instead of comparing it")

const page = "../../docs/states.md"

// The page is made from the table, and is current.
func TestStatesPage(t *testing.T) {
	want := render(t)
	if *rewrite {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644)) //nolint:gosec // a page of the documentation
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "go test ./internal/core -run TestStatesPage -rewrite")
}

// representatives are candidates in a phase in which its rules take different ways.
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
				c := core.Candidate{Phase: p, Want: want, Doomed: doomed, Owed: flag, Unsure: flag}
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

// events are what can be learnt of a kind.
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

// outcomes are the phases in which a rule can end.
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

func render(t *testing.T) string {
	var b strings.Builder
	b.WriteString(`# The states of a candidate

This page is generated from the table in [internal/core](../internal/core/table.go) by its test: the code and the page cannot
differ. Each phase has a rule for each event. A candidate has one key, bound to the lease of its session.

`)
	for p := range core.Phases() {
		fmt.Fprintf(&b, "## %s\n\n| event | what happens | next phase |\n|---|---|---|\n", p)
		row, last := "", ""
		for k := range core.Kinds() {
			rule := core.Table[p][k]
			require.NotEmpty(t, rule.Text, "%s at %s", k, p)
			require.NotNil(t, rule.Do, "%s at %s", k, p)
			var next []string
			for _, o := range outcomes(p, k) {
				next = append(next, o.String())
			}
			rest := fmt.Sprintf(" | %s | %s |\n", rule.Text, strings.Join(next, ", "))
			switch {
			case rest == last: // one row for events with the same rule
				row += ", " + k.String()
			case last != "":
				b.WriteString(row + last)
				fallthrough
			default:
				row, last = "| "+k.String(), rest
			}
		}
		b.WriteString(row + last)
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
