package explore_test

import (
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/explore"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) {
	// A search makes very many small worlds: collecting garbage less often saves a third of the time.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

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
			t.Parallel()
			r, err := search(l)
			require.NoError(t, err)
			require.Positive(t, r.Wins)
			t.Logf("%+v", r)
		})
	}
}

// breaks searches within one of the bounds until it finds a violation, which must exist.
func breaks(t *testing.T, search func() (explore.Result, error)) {
	t.Parallel()
	_, found := search()
	require.Error(t, found)
	t.Log(found)
}

// Long walks, with four candidates, from another seed each time.
func TestRandom(t *testing.T) {
	t.Parallel()
	const walks = 1000
	r, err := explore.Random(explore.Limits{Candidates: 4, Calls: 40, Faults: 12, Deletions: 2, Yields: 5, Ends: 3}, core.Step, etcdtest.Draw(t).Uint64(), walks)
	require.NoError(t, err)
	require.Greater(t, r.Wins, walks)
	t.Logf("%+v", r)
}

// broken has copies of core.Step, each without one rule.
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
		within := sizes["by hand"]
		if name == "end-with-session" {
			within = sizes["sessions"]
		}
		t.Run(name, func(t *testing.T) {
			breaks(t, func() (explore.Result, error) { return explore.All(within, step) })
		})
	}
}

var leases = map[string]explore.Lease{
	"steady clock":    {TTL: 4, Margin: 1},
	"drift":           {TTL: 4, Margin: 1, Drift: true},
	"another leader":  {TTL: 4, Margin: 1, Leaders: 1},
	"longer, drift":   {TTL: 5, Margin: 2, Drift: true},
	"two, with drift": {TTL: 3, Margin: 1, Leaders: 2, Drift: true},
}

func TestSessions(t *testing.T) {
	holds(t, leases, func(l explore.Lease) (explore.Result, error) { return explore.Sessions(l, core.StepSession) })
}

// Each rule is needed.
func TestBrokenSessions(t *testing.T) {
	for name, step := range map[string]explore.SessionStepper{
		"deadline from the answer": func(s core.Session, e core.SessionEvent) (core.Session, core.SessionEffects) {
			if e.Kind == core.Confirmed {
				s.Sent = e.Now
			}
			return core.StepSession(s, e)
		},
		"late answers count": func(s core.Session, e core.SessionEvent) (core.Session, core.SessionEffects) {
			deadline := s.Deadline
			if e.Kind == core.Renewed || e.Kind == core.Confirmed {
				s.Deadline = e.Now + time.Hour
			}
			next, effects := core.StepSession(s, e)
			if next.Deadline == e.Now+time.Hour {
				next.Deadline = deadline
			}
			return next, effects
		},
		"no margin": func(s core.Session, e core.SessionEvent) (core.Session, core.SessionEffects) {
			e.Rhythm.Margin = 0
			return core.StepSession(s, e)
		},
		"no majority": func(s core.Session, e core.SessionEvent) (core.Session, core.SessionEffects) {
			if e.Kind == core.Renewed {
				e.Term = 0
			}
			return core.StepSession(s, e)
		},
		"failures prolong": func(s core.Session, e core.SessionEvent) (core.Session, core.SessionEffects) {
			next, effects := core.StepSession(s, e)
			if e.Kind == core.Failed && next.Stage != core.Ended {
				next.Deadline += time.Second
			}
			return next, effects
		},
	} {
		t.Run(name, func(t *testing.T) {
			breaks(t, func() (explore.Result, error) { return explore.Sessions(leases["two, with drift"], step) })
		})
	}
}

// Scripts: the results of lists of moves. testdata/protocol has ordinary lists and each rule;
// testdata/model has the counter-examples of docs/model, in which the code behaves correctly, and
// the same lists without the rule. -rewrite writes what is found.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			l := explore.Limits{Candidates: 2, Calls: 100, Faults: 100, Deletions: 100, Ends: 100}
			if d.HasArg("candidates") {
				d.ScanArgs(t, "candidates", &l.Candidates)
			}
			step := explore.Stepper(core.Step)
			if d.HasArg("without") {
				var rule string
				d.ScanArgs(t, "without", &rule)
				require.Contains(t, broken, rule)
				step = broken[rule]
			}
			require.Equal(t, "moves", d.Cmd)
			said, err := explore.Play(l, step, strings.Split(strings.TrimSpace(d.Input), "\n"))
			var violation *explore.ViolationError
			if errors.As(err, &violation) {
				return said + violation.Err.Error() + "\n"
			}
			require.NoError(t, err, "%s\n%s", d.Pos, said)
			return said
		})
	})
}
