package explore_test

import (
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/explore"
	"github.com/eldest-io/eldest/internal/core"
)

var leases = map[string]explore.Lease{
	"steady clock":    {TTL: 4, Margin: 1, Ticks: 12},
	"drift":           {TTL: 4, Margin: 1, Ticks: 12, Drift: true},
	"another leader":  {TTL: 4, Margin: 1, Ticks: 12, Leaders: 1},
	"longer, drift":   {TTL: 5, Margin: 2, Ticks: 12, Drift: true},
	"two, with drift": {TTL: 3, Margin: 1, Ticks: 10, Leaders: 2, Drift: true},
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
			breaks(t, leases, func(l explore.Lease) (explore.Result, error) { return explore.Sessions(l, step) })
		})
	}
}
