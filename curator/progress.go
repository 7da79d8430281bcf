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

// wayWaiting is the way of a call that is neither served nor forwarded: a call that ends so is refused.
const wayWaiting = WayRefused

// traffic counts the calls to elected services that are under way at a node, by where they are.
type traffic [3]atomic.Int64

func (t *traffic) load() Load {
	return Load{Waiting: int(t[wayWaiting].Load()), Forwarding: int(t[WayForwarded].Load()), Serving: int(t[WayServed].Load())}
}

// progress tracks one call from its arrival to its answer, for Hooks and Load. It is used only on
// the call's goroutine.
//
// Invariant: between begin and end the call counts once in the traffic, at event.Way. It may go back to waiting any
// number of times.
type progress struct {
	traffic *traffic
	hooks   Hooks
	event   CallEvent // what is known of it so far

	began, since time.Time // of the call, and of event.Way
	// missing is what the call waits for: the reason of the refusal if its caller ends it now.
	missing Refusal
}

// begin counts a call that has arrived as waiting for a route.
func (t *traffic) begin(method string, h hop, hooks Hooks) *progress {
	now := time.Now()
	t[wayWaiting].Add(1)
	return &progress{
		traffic: t, hooks: hooks, event: CallEvent{Method: method, Hop: h.token > 0},
		began: now, since: now,
	}
}

// tries counts an attempt. missing is the reason of the refusal if the caller ends the call while
// the attempt waits.
func (p *progress) tries(missing Refusal) {
	p.event.Attempts++
	p.missing = missing
}

// enter changes the way of the call.
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

// errUnanswered is the answer of a call until there is another one. It remains if a handler
// panicked or ended its goroutine.
var errUnanswered = status.Error(codes.Unknown, "eldest: the handler did not return")

// end takes the call out of the traffic and calls the hook. It is deferred with the call's answer,
// so that a call whose handler panics is counted as well. If another node has forwarded the call,
// that node receives the reason of a refusal, because it has the caller.
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
		// Which of the two codes it is depends on which timer fired first.
		e.Refusal = p.missing
	}
	if e.Hop && e.Refusal != 0 {
		caller.SetTrailer(metadata.Pairs(refusedKey, e.Refusal.String()))
	}
	if p.hooks.Answered != nil {
		p.hooks.Answered(*e)
	}
}

// codeOf returns the code that gRPC derives from what a handler returns.
func codeOf(err error) codes.Code {
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	return st.Code()
}
