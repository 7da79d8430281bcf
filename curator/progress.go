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

// wayWaiting is where a call is that is neither served nor forwarded: if it ends there, it was refused.
const wayWaiting = WayRefused

// traffic counts the calls to elected services that are under way at a node, by where they are.
type traffic [3]atomic.Int64

func (t *traffic) load() Load {
	return Load{Waiting: int(t[wayWaiting].Load()), Forwarding: int(t[WayForwarded].Load()), Serving: int(t[WayServed].Load())}
}

// progress follows one call from its arrival to its answer, for Hooks and Load. It is used
// on the call's goroutine alone.
//
// Invariant: between begin and end the call counts once in the traffic, at event.Way. It may go back to waiting any
// number of times.
type progress struct {
	traffic *traffic
	hooks   Hooks
	event   CallEvent // what is known of it so far

	began, since time.Time // the call, and where it is
	// missing is what the call has waited for, if its caller ends it now.
	missing Refusal
}

// begin has a call that has arrived wait for a route.
func (t *traffic) begin(method string, h hop, hooks Hooks) *progress {
	now := time.Now()
	t[wayWaiting].Add(1)
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

// enter moves the call.
func (p *progress) enter(way Way) {
	now := time.Now()
	p.leave(now)
	p.event.Way, p.since = way, now
	p.traffic[way].Add(1)
}

func (p *progress) leave(now time.Time) {
	p.traffic[p.event.Way].Add(-1)
	if p.event.Way == wayWaiting {
		p.event.Waited += now.Sub(p.since)
	}
}

// errUnanswered is the answer of a call until there is another one: of a handler that
// panicked, or ended its goroutine.
var errUnanswered = status.Error(codes.Unknown, "eldest: the handler did not return")

// end takes the call out of the traffic and calls the hook. It is deferred with the call's
// answer, so that a call whose handler panics is counted as well. If another node has
// forwarded the call, that node receives the reason of a refusal: it has the caller.
func (p *progress) end(caller grpc.ServerStream, answer *error) {
	now := time.Now()
	p.leave(now)
	e := &p.event
	e.Took, e.Code = now.Sub(p.began), codeOf(*answer)
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
