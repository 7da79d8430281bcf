package explore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/explore"
	"github.com/eldest-io/eldest/internal/core"
)

var sizes = map[string]explore.Limits{
	"calls":    {Candidates: 2, Calls: 5},
	"faults":   {Candidates: 2, Calls: 3, Faults: 2},
	"by hand":  {Candidates: 2, Calls: 3, Faults: 1, Deletions: 1},
	"sessions": {Candidates: 2, Calls: 3, Faults: 1, Ends: 1},
	"three":    {Candidates: 3, Calls: 4},
}

func TestAll(t *testing.T) {
	for name, l := range sizes {
		t.Run(name, func(t *testing.T) {
			r, err := explore.All(l, core.Step)
			require.NoError(t, err)
			require.Positive(t, r.Wins)
			t.Logf("%+v", r)
		})
	}
}

func TestRandom(t *testing.T) {
	r, err := explore.Random(explore.Limits{Candidates: 4, Calls: 30, Faults: 10, Deletions: 2, Ends: 3}, core.Step, 1, 20000)
	require.NoError(t, err)
	t.Logf("%+v", r)
}

// Rules taken out, each of which is found.
func TestBroken(t *testing.T) {
	for name, step := range map[string]explore.Stepper{
		"win at the deletion": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
			if c.Phase == core.Waiting && e.Kind == core.ElderDeleted {
				c.Phase = core.Proving
				return core.Step(c, core.Event{Kind: core.Looked, Token: c.Token, Position: core.Position{Revision: e.Revision, Complete: true}})
			}
			return core.Step(c, e)
		},
		"own key not looked at": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
			if c.Phase == core.Proving && e.Kind == core.Looked && e.Token == 0 {
				e.Token, e.Position.Complete = c.Token, true
			}
			return core.Step(c, e)
		},
		"doomed keys adopted": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
			next, effects := core.Step(c, e)
			next.Doomed = 0
			return next, effects
		},
		"late registrations forgotten": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
			next, effects := core.Step(c, e)
			next.Owed = false
			return next, effects
		},
		"refused deletion given up": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
			if c.Phase == core.Leaving && e.Kind == core.Refused {
				return core.Candidate{Doomed: c.Doomed, Owed: c.Owed}, core.Effects{}
			}
			return core.Step(c, e)
		},
		"deaf to its own key": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
			if e.Kind == core.KeyDeleted && c.Phase == core.Leading {
				return c, core.Effects{}
			}
			return core.Step(c, e)
		},
		"context outlives the key": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
			next, effects := core.Step(c, e)
			if e.Kind == core.Leave {
				effects.Ended = 0
			}
			return next, effects
		},
		"context outlives the session": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
			next, effects := core.Step(c, e)
			if e.Kind == core.SessionEnded {
				effects.Ended = 0
			}
			return next, effects
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := 0
			for _, l := range sizes {
				if r, err := explore.All(l, step); err != nil {
					found++
					t.Logf("%+v %v", r, err)
				}
			}
			require.Positive(t, found)
		})
	}
}
