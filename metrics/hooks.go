package metrics

import (
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
			e.set.inc(&sessionsDef)
			if now := e.sources().session; now != nil && now.Err() == nil && event.Session.Err() != nil {
				return // the hook was late: the next session is attached
			}
			e.heartbeatsRefused(false)
			e.AttachCandidate(event.Session, nil)
		},
		Renewed: func(event lease.RenewedEvent) {
			e.set.observe(&latencyDef, event.Latency.Seconds())
			e.set.observe(&slackDef, event.Slack.Seconds()/event.TTL.Seconds())
		},
		Heartbeat: func(event lease.HeartbeatEvent) {
			if event.Err == nil {
				e.set.observe(&beatDef, event.Latency.Seconds())
			} else {
				e.set.inc(&missedDef)
			}
			if event.NotPermitted {
				e.heartbeatsRefused(true)
			}
		},
		AtRisk: func(lease.AtRiskEvent) { e.set.inc(&atRiskDef) },
		Lost: func(event lease.LostEvent) {
			is := sessionLost
			if hooks.Cause(event.Cause) == closed { // the reason of a loss may wrap ErrClosed, too
				is = closed
			}
			e.set.inc(&goneDef, is)
		},
	}
}

func (e *Election) heartbeatsRefused(is bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now.refused = is
}

func (e *Election) candidateHooks() election.Hooks {
	return election.Hooks{
		Registered: func(event election.RegisteredEvent) {
			e.set.inc(&campaignsDef)
			if now := e.sources().candidate; now != nil && now.Status().Token != 0 && event.Candidate.Status().Token == 0 {
				return // the hook was late: the next candidate is attached
			}
			e.AttachCandidate(nil, event.Candidate)
		},
		Won: func(event election.WonEvent) {
			if event.Resumed {
				return // it is the tenure that was suspended
			}
			e.set.inc(&winsDef)
			e.set.observe(&waitDef, event.Waited.Seconds())
			if event.Proof > 0 {
				e.set.observe(&proofDef, event.Proof.Seconds())
			}
		},
		Suspended: func(election.SuspendedEvent) { e.set.inc(&suspendedDef) },
		Evicted:   func(election.EvictedEvent) { e.set.inc(&evictionsDef) },
		Ended: func(event election.EndedEvent) {
			cause := event.Cause
			if !event.Drained.IsZero() {
				cause = eldest.ErrDraining // the tenure ended with the drain, whatever happened to the key
			}
			if event.Led {
				e.set.inc(&endedDef, hooks.Cause(cause))
			} else {
				e.set.inc(&leftDef, hooks.Cause(cause))
			}
		},
		Foreign:     func(election.ForeignEvent) { e.set.inc(&foreignDef) },
		Interrupted: func(election.InterruptedEvent) { e.set.inc(&restartsDef, "candidate") },
	}
}

func (e *Election) observerHooks() observe.Hooks {
	return observe.Hooks{
		Started: func(event observe.StartedEvent) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.now.observers[event.Observer] = true
		},
		Interrupted: func(observe.InterruptedEvent) { e.set.inc(&restartsDef, "observer") },
		Ended: func(event observe.EndedEvent) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.drain(event.Observer)
		},
	}
}
