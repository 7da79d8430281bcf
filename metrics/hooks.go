package metrics

import (
	"errors"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// Hooks returns the hooks that update the collector. They return at once.
func (e *Election) Hooks() hooks.Set {
	return hooks.Set{Session: e.sessionHooks(), Candidate: e.candidateHooks(), Observer: e.observerHooks()}
}

func (e *Election) sessionHooks() lease.Hooks {
	return lease.Hooks{
		Opened: func(event lease.OpenedEvent) {
			e.sessions.Inc()
			e.muted.Set(0)
			e.AttachCandidate(event.Session, nil)
		},
		Renewed: func(event lease.RenewedEvent) {
			e.latency.Observe(event.Latency.Seconds())
			e.slack.Observe(event.Slack.Seconds() / event.TTL.Seconds())
		},
		Heartbeat: func(event lease.HeartbeatEvent) {
			if event.Err == nil {
				e.beats.Observe(event.Latency.Seconds())
			} else {
				e.missed.Inc()
			}
			if event.NotPermitted {
				e.muted.Set(1)
			}
		},
		AtRisk: func(lease.AtRiskEvent) { e.atRisk.Inc() },
		Lost: func(event lease.LostEvent) {
			is := sessionLost
			if errors.Is(event.Cause, eldest.ErrClosed) {
				is = closed
			}
			e.gone.WithLabelValues(is).Inc()
		},
	}
}

func (e *Election) candidateHooks() election.Hooks {
	return election.Hooks{
		Registered: func(event election.RegisteredEvent) {
			e.campaigns.Inc()
			e.AttachCandidate(nil, event.Candidate)
		},
		Won: func(event election.WonEvent) {
			if event.Resumed {
				return // it is the tenure that was suspended
			}
			e.wins.Inc()
			e.wait.Observe(event.Waited.Seconds())
			if event.Proof > 0 {
				e.proof.Observe(event.Proof.Seconds())
			}
		},
		Suspended: func(election.SuspendedEvent) { e.suspensions.Inc() },
		Evicted:   func(election.EvictedEvent) { e.evictions.Inc() },
		Ended: func(event election.EndedEvent) {
			cause := event.Cause
			if !event.Drained.IsZero() {
				cause = eldest.ErrDraining // the tenure ended with the drain, whatever happened to the key
			}
			if event.Led {
				e.ended.WithLabelValues(hooks.Cause(cause)).Inc()
			} else {
				e.left.WithLabelValues(hooks.Cause(cause)).Inc()
			}
		},
		Foreign:     func(election.ForeignEvent) { e.foreign.Inc() },
		Interrupted: func(election.InterruptedEvent) { e.restarts.WithLabelValues("candidate").Inc() },
	}
}

func (e *Election) observerHooks() observe.Hooks {
	return observe.Hooks{
		Started: func(event observe.StartedEvent) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.observers[event.Observer] = true
		},
		Interrupted: func(observe.InterruptedEvent) { e.restarts.WithLabelValues("observer").Inc() },
		Ended: func(event observe.EndedEvent) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.drain(event.Observer)
		},
	}
}
