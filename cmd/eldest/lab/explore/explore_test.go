package explore_test

import (
	"math/rand/v2"
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
	"yielding": {Candidates: 2, Calls: 3, Faults: 1, Yields: 2},
	"three":    {Candidates: 3, Calls: 4},
}

func TestAll(t *testing.T) {
	holds(t, sizes, func(l explore.Limits) (explore.Result, error) { return explore.All(l, core.Step) })
}

// holds searches within each of the bounds, and finds no violation.
func holds[L any](t *testing.T, bounds map[string]L, search func(L) (explore.Result, error)) {
	for name, l := range bounds {
		t.Run(name, func(t *testing.T) {
			r, err := search(l)
			require.NoError(t, err)
			require.Positive(t, r.Wins)
			t.Logf("%+v", r)
		})
	}
}

// breaks searches within the bounds, one after the other, until it finds a violation, as it must.
func breaks[L any](t *testing.T, bounds map[string]L, search func(L) (explore.Result, error)) {
	var found error
	for _, l := range bounds {
		if _, found = search(l); found != nil {
			break
		}
	}
	require.Error(t, found)
	t.Log(found)
}

// Long walks, with four candidates, from another seed each time.
func TestRandom(t *testing.T) {
	seed := rand.Uint64()
	r, err := explore.Random(explore.Limits{Candidates: 4, Calls: 40, Faults: 12, Deletions: 2, Yields: 5, Ends: 3}, core.Step, seed, 3000)
	require.NoError(t, err, "seed %d", seed)
	require.Greater(t, r.Wins, 3000)
	t.Logf("seed %d: %+v", seed, r)
}

// broken is core.Step with one rule taken out.
var broken = map[string]explore.Stepper{
	"proof": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
		if c.Phase == core.Waiting && e.Kind == core.ElderDeleted {
			c.Phase = core.Proving
			return core.Step(c, core.Event{Kind: core.Looked, Token: c.Token, Position: core.Position{Revision: e.Revision, Complete: true}})
		}
		return core.Step(c, e)
	},
	"own-key": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
		if c.Phase == core.Proving && e.Kind == core.Looked && e.Token == 0 {
			e.Token, e.Position.Complete = c.Token, true
		}
		return core.Step(c, e)
	},
	"doom": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
		next, effects := core.Step(c, e)
		next.Doomed = 0
		return next, effects
	},
	"owed": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
		next, effects := core.Step(c, e)
		next.Owed = false
		return next, effects
	},
	"insistence": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
		if c.Phase == core.Leaving && e.Kind == core.Refused {
			return core.Candidate{Doomed: c.Doomed, Owed: c.Owed}, core.Effects{}
		}
		return core.Step(c, e)
	},
	"own-watch": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
		if e.Kind == core.KeyDeleted && c.Phase == core.Leading {
			return c, core.Effects{}
		}
		return core.Step(c, e)
	},
	"end-first": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
		next, effects := core.Step(c, e)
		if e.Kind == core.Leave {
			effects.Ended = 0
		}
		return next, effects
	},
	"end-with-session": func(c core.Candidate, e core.Event) (core.Candidate, core.Effects) {
		next, effects := core.Step(c, e)
		if e.Kind == core.SessionEnded {
			effects.Ended = 0
		}
		return next, effects
	},
}

// Each rule is needed: without it the search finds a violation.
func TestBroken(t *testing.T) {
	for name, step := range broken {
		t.Run(name, func(t *testing.T) {
			breaks(t, sizes, func(l explore.Limits) (explore.Result, error) { return explore.All(l, step) })
		})
	}
}
