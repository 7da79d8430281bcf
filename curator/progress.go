package curator

import (
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// traffic counts the calls to elected services that are under way at a node.
type traffic struct {
	stages [3]atomic.Int64 // by stage
}

func (t *traffic) load() Load {
	return Load{
		Waiting:    int(t.stages[stageWaiting].Load()),
		Forwarding: int(t.stages[stageForwarding].Load()), Serving: int(t.stages[stageServing].Load()),
	}
}

// stage is where a call is. A call may go back to waiting any number of times.
type stage uint8

const (
	stageWaiting stage = iota
	stageServing
	stageForwarding
)

// way is what becomes of a call that ends in the stage.
func (s stage) way() Way {
	switch s {
	case stageServing:
		return WayServed
	case stageForwarding:
		return WayForwarded
	default:
		return WayRefused
	}
}

// progress follows one call from its arrival to its answer, for Hooks and Load. It is used
// on the call's goroutine alone.
//
// Invariant: between begin and end the call counts in exactly one stage of the traffic.
type progress struct {
	traffic *traffic
	hooks   Hooks
	event   CallEvent // what is known of it so far

	began, since time.Time // the call, and its stage
	stage        stage
	// missing is what the call has waited for, if its caller ends it now.
	missing Refusal
}

// begin has a call that has arrived wait for a route.
func (t *traffic) begin(method string, h hop, hooks Hooks) *progress {
	now := time.Now()
	t.stages[stageWaiting].Add(1)
	return &progress{
		traffic: t, hooks: hooks, event: CallEvent{Method: method, Hop: h.token > 0},
		began: now, since: now,
	}
}

// tries notes that the call tries a route; without missing, that would not be a refusal.
func (p *progress) tries(missing Refusal) {
	p.event.Attempts++
	p.missing = missing
}

// enter moves the call to another stage.
func (p *progress) enter(next stage) {
	now := time.Now()
	p.leave(now)
	p.stage, p.since = next, now
	p.traffic.stages[next].Add(1)
}

func (p *progress) leave(now time.Time) {
	p.traffic.stages[p.stage].Add(-1)
	if p.stage == stageWaiting {
		p.event.Waited += now.Sub(p.since)
	}
}

// errUnanswered is the answer of a call until there is another one: of a handler that
// panicked, or ended its goroutine.
var errUnanswered = status.Error(codes.Unknown, "eldest: the handler did not return")

// end takes the call out of the traffic and calls the hook. It is deferred with the call's
// answer, so that a call whose handler panics is counted as well. If another node has
// forwarded the call, that node is told the reason of a refusal: it has the caller.
func (p *progress) end(caller grpc.ServerStream, answer *error) {
	now := time.Now()
	p.leave(now)
	e := &p.event
	e.Way, e.Took, e.Code = p.stage.way(), now.Sub(p.began), codeOf(*answer)
	var refused *refusedError
	switch {
	case errors.As(*answer, &refused):
		e.Refusal = refused.reason
	case e.Way == WayRefused && (e.Code == codes.Canceled || e.Code == codes.DeadlineExceeded):
		// Which of the two it is depends on whose timer was quicker.
		e.Refusal = p.missing
	}
	if e.Hop && e.Refusal != 0 {
		caller.SetTrailer(metadata.Pairs(refusedKey, e.Refusal.String()))
	}
	if p.hooks.Answered != nil {
		p.hooks.Answered(*e)
	}
}

// codeOf is the code that gRPC makes of what a handler returns.
func codeOf(err error) codes.Code {
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	return st.Code()
}

// refusedError is the answer of a node in the service's place, with the reason.
type refusedError struct {
	error
	reason Refusal
}

// refused adds the reason to an answer; nil and a reason of 0 change nothing.
func refused(reason Refusal, err error) error {
	if err == nil || reason == 0 {
		return err
	}
	return &refusedError{err, reason}
}

// Unwrap returns the answer without the reason.
func (e *refusedError) Unwrap() error { return e.error }

// GRPCStatus returns the answer's status, which gRPC sends.
func (e *refusedError) GRPCStatus() *status.Status { return status.Convert(e.error) }

// refusedThere adds the reason that the leader gave in its trailer. The last one counts: the
// leader's curator writes after its service.
func refusedThere(trailer []string, err error) error {
	if len(trailer) == 0 {
		return err
	}
	return refused(refusalOf(trailer[len(trailer)-1]), err)
}
