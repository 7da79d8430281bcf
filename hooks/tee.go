package hooks

import (
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// Tee returns hooks that call those of all, in the order given, for each event: the
// next event is told when all have returned. Those that are nil are left out, and what
// nobody wants to hear stays nil, so that it costs nothing. all is copied.
func Tee[H Kind](all ...H) H {
	var told any
	switch all := any(all).(type) {
	case []lease.Hooks:
		told = teeSession(all)
	case []election.Hooks:
		told = teeCandidate(all)
	case []observe.Hooks:
		told = teeObserver(all)
	case []Set:
		told = teeSet(all)
	}
	return told.(H)
}

func teeSet(all []Set) Set {
	return Set{
		Session:   teeSession(each(all, func(s Set) lease.Hooks { return s.Session })),
		Candidate: teeCandidate(each(all, func(s Set) election.Hooks { return s.Candidate })),
		Observer:  teeObserver(each(all, func(s Set) observe.Hooks { return s.Observer })),
	}
}

func teeSession(all []lease.Hooks) lease.Hooks {
	return lease.Hooks{
		Retrying:  tee(all, func(h lease.Hooks) func(lease.RetryingEvent) { return h.Retrying }),
		Opened:    tee(all, func(h lease.Hooks) func(lease.OpenedEvent) { return h.Opened }),
		Renewed:   tee(all, func(h lease.Hooks) func(lease.RenewedEvent) { return h.Renewed }),
		Jeopardy:  tee(all, func(h lease.Hooks) func(lease.JeopardyEvent) { return h.Jeopardy }),
		Recovered: tee(all, func(h lease.Hooks) func(lease.RenewedEvent) { return h.Recovered }),
		Lost:      tee(all, func(h lease.Hooks) func(lease.LostEvent) { return h.Lost }),
	}
}

func teeCandidate(all []election.Hooks) election.Hooks {
	return election.Hooks{
		Registered:  tee(all, func(h election.Hooks) func(election.RegisteredEvent) { return h.Registered }),
		Waiting:     tee(all, func(h election.Hooks) func(election.WaitingEvent) { return h.Waiting }),
		Won:         tee(all, func(h election.Hooks) func(election.WonEvent) { return h.Won }),
		Ended:       tee(all, func(h election.Hooks) func(election.EndedEvent) { return h.Ended }),
		Foreign:     tee(all, func(h election.Hooks) func(election.ForeignEvent) { return h.Foreign }),
		Interrupted: tee(all, func(h election.Hooks) func(election.InterruptedEvent) { return h.Interrupted }),
		Retrying:    tee(all, func(h election.Hooks) func(election.RetryingEvent) { return h.Retrying }),
	}
}

func teeObserver(all []observe.Hooks) observe.Hooks {
	return observe.Hooks{
		Started:     tee(all, func(h observe.Hooks) func(observe.StartedEvent) { return h.Started }),
		Interrupted: tee(all, func(h observe.Hooks) func(observe.InterruptedEvent) { return h.Interrupted }),
		Retrying:    tee(all, func(h observe.Hooks) func(observe.RetryingEvent) { return h.Retrying }),
		Ended:       tee(all, func(h observe.Hooks) func(observe.EndedEvent) { return h.Ended }),
	}
}

// tee returns one hook for those that of finds in all; nil if there are none.
func tee[H, E any](all []H, of func(H) func(E)) func(E) {
	var told []func(E)
	for _, h := range all {
		if hook := of(h); hook != nil {
			told = append(told, hook)
		}
	}
	switch len(told) {
	case 0:
		return nil
	case 1:
		return told[0]
	}
	return func(event E) {
		for _, hook := range told {
			hook(event)
		}
	}
}

func each[S, H any](all []S, of func(S) H) []H {
	parts := make([]H, len(all))
	for i, s := range all {
		parts[i] = of(s)
	}
	return parts
}
