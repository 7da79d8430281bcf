package curator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// dispatcher runs the handlers of the tenure of this node.
//
// A handler runs on a goroutine of its own, because a call is answered where gRPC
// called us, and the end of a tenure must be answered at once while the handler may take
// its time: it may sit in a receive that only the end of the call ends.
type dispatcher struct {
	election, node string
	grace          time.Duration
	unary          grpc.UnaryServerInterceptor
	stream         grpc.StreamServerInterceptor
}

// outcome is how a handler ended.
type outcome struct {
	reply any // of a unary handler
	err   error
	panic *handlerPanicError
}

// errEnded is the outcome of a handler whose goroutine ended without returning.
var errEnded = status.Error(codes.Internal, "eldest: the handler ended its goroutine")

// dispatch runs one call in a tenure, and returns how it is answered. It blocks until the handler
// has returned, or the tenure has ended and the handler will not say in time what became
// of the call. The error is errNotBegun if the tenure ended before the handler was called, or
// before a unary one had the message: then all that the caller sent can be received again.
func (d *dispatcher) dispatch(stream *reading, t *tenure, m *method) error {
	unary := m.unary != nil
	if err := t.begin(unary); err != nil {
		return fmt.Errorf("%w: %w", errNotBegun, err)
	}
	begun := func() {
		if stream.commit() {
			led(stream, t.token)
		}
	}
	if !unary {
		begun()
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	c := newCall(ctx, stream, m)
	c.late = func() error {
		if err := t.over(); err != nil {
			return d.refused(t, err, unary)
		}
		begun() // a unary call has, now
		return nil
	}
	ended := make(chan outcome) // not buffered: a panic must find somebody, or be one here
	abandoned := make(chan struct{})
	go func() {
		defer t.end(unary)
		d.run(c, m, ended, abandoned)
	}()

	var out outcome
	select {
	case out = <-ended:
	case <-t.ctx.Done():
		lost := t.lost()
		cancel(lost)
		gone, busy := c.lose(func(received bool) error { return d.refused(t, lost, unary && !received) })
		var ok bool
		if out, ok = await(ended, busy, d.grace); !ok {
			close(abandoned)
			if err := stream.Context().Err(); err != nil {
				return status.FromContextError(err).Err()
			}
			if unary && !c.begun() {
				return fmt.Errorf("%w: %w", errNotBegun, lost)
			}
			return gone
		}
	}
	if gone := c.over(); gone != nil && unary && !c.begun() && out.panic == nil && stream.Context().Err() == nil {
		return fmt.Errorf("%w: %w", errNotBegun, gone)
	}
	begun()
	return d.answer(c, t, out, unary)
}

var errNotBegun = errors.New("the tenure ended before the call began")

// run calls the handler. If nobody waits for the outcome it is dropped, but for a panic:
// that is passed on to whoever called us, where interceptors that recover from panics
// stand, and if there is nobody any more it ends the process as it does in gRPC.
func (d *dispatcher) run(c *call, m *method, ended chan<- outcome, abandoned <-chan struct{}) {
	out := outcome{err: errEnded}
	returned := false
	defer func() {
		if !returned {
			if p := recover(); p != nil {
				out.panic = &handlerPanicError{value: p, stack: debug.Stack()}
			}
		}
		select {
		case ended <- out:
		case <-abandoned:
			if out.panic != nil {
				panic(out.panic)
			}
		}
	}()
	out.reply, out.err = d.call(c, m)
	returned = true
}

func (d *dispatcher) call(c *call, m *method) (any, error) {
	if m.unary != nil {
		return m.unary(m.impl, c.ctx, c.RecvMsg, d.unary)
	}
	if d.stream == nil {
		return nil, m.stream.Handler(m.impl, c)
	}
	info := &grpc.StreamServerInfo{FullMethod: m.name, IsClientStream: m.stream.ClientStreams, IsServerStream: m.stream.ServerStreams}
	return nil, d.stream(m.impl, c, info, m.stream.Handler)
}

// await waits for the outcome of a handler whose tenure has ended: not at all while it
// is busy with the stream, which will not let go before the call is answered.
func await(ended <-chan outcome, busy bool, grace time.Duration) (outcome, bool) {
	if busy {
		return outcome{}, false
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case out := <-ended:
		return out, true
	case <-patience.C:
		return outcome{}, false
	}
}

// answer turns an outcome into the answer.
func (d *dispatcher) answer(c *call, t *tenure, out outcome, unary bool) error {
	switch {
	case out.panic != nil:
		panic(out.panic)
	case out.err != nil:
		if gone := c.over(); gone != nil && errors.Is(out.err, gone) {
			return gone // our own, which the handler met in a receive or a send
		}
		lost := t.lost()
		return t.judge(c.ServerStream.Context(), out.err, lost, func(untouched bool) error {
			if lost == nil {
				lost = out.err
			}
			return d.refused(t, lost, unary && (untouched || !c.begun()))
		})
	case !unary:
		return nil
	}
	return c.decoding.SendMsg(out.reply)
}

// handlerPanicError is a panic of a handler, with where it was: it goes on on another
// goroutine.
type handlerPanicError struct {
	value any
	stack []byte
}

// Error is what an interceptor that recovers prints, or the runtime.
func (p *handlerPanicError) Error() string {
	return fmt.Sprintf("%v\n\nin a handler:\n%s", p.value, p.stack)
}

// Unwrap returns the value, if that is an error.
func (p *handlerPanicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

func (d *dispatcher) refused(t *tenure, lost error, untouched bool) error {
	return refusal{
		election: d.election, token: t.token, node: d.node, untouched: untouched,
		why: fmt.Sprintf("node %q leads no more: %v", d.node, lost),
	}.err()
}
