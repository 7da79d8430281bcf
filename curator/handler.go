package curator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// errNotBegun is the result of an attempt that came too late for a tenure or a connection. The call
// has not been sent anywhere, and there is another route now.
var errNotBegun = errors.New("the call has not begun")

// errEnded is the result of a handler whose goroutine ended without returning.
var errEnded = status.Error(codes.Internal, "eldest: the goroutine of the handler ended before the handler returned")

// serve runs the call here, as the leader. It blocks until the handler has returned, or until the
// tenure has ended and Config.Grace has passed or Stop was called. The error is errNotBegun if the
// tenure ended before the call had begun; then everything that the caller sent can be received
// again.
//
// A stream has begun when its handler is called. A unary call has begun when its handler has the
// message: decoding a large one takes time, in which the tenure may end.
//
// The handler has its own goroutine. A call is answered on gRPC's goroutine, and the end of a
// tenure must be answered at once although the handler still runs: the handler may be in a receive
// that only the end of the call ends.
func (v *incoming) serve(t *tenure) error {
	v.progress.tries(RefusalTenureEnded)
	v.progress.enter(WayServed)
	m, ok := t.Service[v.name]
	if !ok {
		return unknownMethod(v.name)
	}
	if m.unary != nil && v.hop.token > 0 {
		v.caller.SetTrailer(metadata.Pairs(unaryKey, ""))
	}
	since := time.Now()
	err := v.dispatch(t, m)
	if errors.Is(err, errNotBegun) {
		v.until = v.until.Add(time.Since(since)) // the time in which the caller sends its message does not count
		v.progress.enter(wayWaiting)
	}
	return err
}

func (v *incoming) dispatch(t *tenure, m *method) error {
	stream := v.caller.again()
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	c := newCall(ctx, stream, m)
	c.over = func() error {
		if err := t.Over(); err != nil {
			return v.tenureEnded(t, err, false)
		}
		return nil
	}
	c.commit = func() {
		if stream.commit() {
			setLeaderHeader(stream, t.Token)
		}
	}
	ended := make(chan outcome) // not buffered: a panic must be received, or end the process
	abandoned := make(chan struct{})
	v.goroutines.Add(1)
	go func() {
		var err error
		if m.unary != nil {
			err = stream.fill()
		}
		v.goroutines.Done()
		if err == nil {
			err = c.enter(t)
		}
		if err != nil {
			select {
			case ended <- outcome{early: err}:
			case <-abandoned:
			}
			return
		}
		defer t.End(c.unary)
		v.invoke(c, m, ended, abandoned)
	}()

	select {
	case out := <-ended:
		return v.result(c, t, m, out)
	case <-t.Context().Done():
	}
	cancel(t.Cause())
	begun, busy, gone := c.end(v.tenureEnded(t, t.Cause(), false))
	if begun && !busy { // a handler that is in the stream returns only when the call is answered
		select {
		case out := <-ended:
			return v.result(c, t, m, out)
		case <-time.After(v.cfg.Grace):
		case <-v.halted.Done():
		}
		select {
		case out := <-ended: // it had come, but select has chosen the end of the wait
			return v.result(c, t, m, out)
		default:
		}
	}
	close(abandoned)
	switch err := stream.Context().Err(); {
	case err != nil:
		return status.FromContextError(err).Err()
	case !begun:
		return fmt.Errorf("%w: %w", errNotBegun, t.Cause())
	default:
		return gone
	}
}

// outcome is how a handler ended.
type outcome struct {
	reply any // of a unary handler
	err   error
	panic *handlerPanicError
	early error // why the handler was not called
}

// invoke calls the handler. If nothing waits for its outcome any more, the outcome is dropped,
// except for a panic: a panic is passed on to gRPC's goroutine, where interceptors that recover
// from panics run. If the call has been answered already, the panic ends the process as it does in
// gRPC.
func (v *incoming) invoke(c *call, m *method, ended chan<- outcome, abandoned <-chan struct{}) {
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
	out.reply, out.err = v.handle(c, m)
	returned = true
}

// handle calls the handler, inside the interceptors of Config.Unary and Stream.
func (c *Curator) handle(stream *call, m *method) (any, error) {
	if m.unary != nil {
		return m.unary(m.impl, stream.ctx, stream.RecvMsg, c.cfg.Unary)
	}
	if c.cfg.Stream == nil {
		return nil, m.stream.Handler(m.impl, stream)
	}
	info := &grpc.StreamServerInfo{FullMethod: m.name, IsClientStream: m.stream.ClientStreams, IsServerStream: m.stream.ServerStreams}
	return nil, c.cfg.Stream(m.impl, stream, info, m.stream.Handler)
}

// result turns an outcome into the answer.
func (v *incoming) result(c *call, t *tenure, m *method, out outcome) error {
	switch {
	case out.panic != nil:
		panic(out.panic)
	case out.early != nil:
		return out.early
	}
	begun, gone := c.settle()
	switch {
	case !begun && v.caller.Context().Err() == nil:
		return fmt.Errorf("%w: %w", errNotBegun, gone)
	case out.err == nil && c.unary:
		return c.decoding.SendMsg(out.reply)
	case out.err == nil && m.stream.ServerStreams:
		return cmp.Or(gone, c.over()) // after the tenure the caller could not detect whether it has received all
	case out.err == nil:
		return nil
	case gone != nil && errors.Is(out.err, gone):
		return gone // this node's answer, which the handler got from a receive or a send
	}
	lost := t.Cause()
	return tenureID{v.cfg.Elector.Election, t.Token}.classify(v.caller.Context(), out.err, lost, func(untouched bool) error {
		if lost == nil {
			lost = out.err
		}
		return v.tenureEnded(t, lost, c.unary && untouched)
	})
}

// handlerPanicError is a panic of a handler, with its stack: it is raised again on another
// goroutine.
type handlerPanicError struct {
	value any
	stack []byte
}

// Error returns the text that the runtime prints, or an interceptor that recovers.
func (p *handlerPanicError) Error() string {
	return fmt.Sprintf("%v\n\nin a handler:\n%s", p.value, p.stack)
}

// Unwrap returns the value, if that is an error.
func (p *handlerPanicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// call is the stream that a handler is given: its messages are decoded, and its context ends
// with the tenure as well as with the caller.
type call struct {
	decoding
	ctx   context.Context
	unary bool
	// over reads the clock and returns the answer to a call whose tenure is over, or nil.
	over func() error
	// commit is called when the call begins. It must not block.
	commit func()

	mu    sync.Mutex
	begun bool  // then it cannot be sent elsewhere
	busy  int   // receives and sends under way
	gone  error // the answer, if the tenure has ended
}

// newCall returns the stream of a call to a method, outside any tenure.
func newCall(ctx context.Context, stream grpc.ServerStream, m *method) *call {
	many := m.stream != nil && m.stream.ClientStreams
	return &call{
		decoding: decoding{ServerStream: stream, codec: codecOf(ctx), many: many},
		ctx:      ctx, unary: m.unary != nil, over: func() error { return nil }, commit: func() {},
	}
}

// Context returns the call's context; see grpc.ServerStream.
func (c *call) Context() context.Context { return c.ctx }

// enter admits the call to the tenure. A stream begins.
func (c *call) enter(t *tenure) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := t.Begin(c.unary); err != nil {
		return fmt.Errorf("%w: %w", errNotBegun, err)
	}
	if !c.unary {
		c.begin()
	}
	return nil
}

// begin begins the call, unless it has begun. The caller holds mu.
func (c *call) begin() {
	if !c.begun {
		c.begun = true
		c.commit()
	}
}

// RecvMsg fails after the end of the tenure, also if a message, or the end of them, has arrived by
// then, which may be long after the call. A unary call begins when it receives its message.
func (c *call) RecvMsg(m any) error {
	return c.during(c.decoding.RecvMsg, m, func() error {
		if err := c.over(); err != nil {
			return err
		}
		c.begin()
		return nil
	})
}

// SendMsg fails after the end of the tenure, also if only the clock has ended it yet.
func (c *call) SendMsg(m any) error {
	return c.during(c.decoding.SendMsg, m, func() error { return nil })
}

// during calls do, a receive or a send, unless the tenure has ended, and then done, unless do failed
// or the tenure ended meanwhile. The end of what the caller sends is no failure.
func (c *call) during(do func(any) error, m any, done func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil {
		c.gone = c.over() // the process may have been stopped since the last operation
	}
	if c.gone != nil {
		return c.gone
	}
	c.busy++
	c.mu.Unlock()
	err := do(m)
	c.mu.Lock()
	c.busy--
	if c.gone == nil && (err == nil || errors.Is(err, io.EOF)) { // the caller's end is received as its messages are
		c.gone = done()
	}
	return cmp.Or(c.gone, err)
}

// end sets the answer of a call whose tenure has ended, unless it has one already, and returns it
// as gone. begun reports whether the call has begun; it cannot begin after this. busy reports
// whether the handler is in a receive or a send.
func (c *call) end(answer error) (begun, busy bool, gone error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil { // otherwise the handler has the first one already, and will return it
		c.gone = answer
	}
	return c.begun, c.busy > 0, c.gone
}

// settle is called when the handler has returned. If the tenure has not ended meanwhile, the call
// begins now at the latest: it is about to be answered. gone is the answer of a call whose tenure
// has ended, or nil.
func (c *call) settle() (begun bool, gone error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil {
		c.begin()
	}
	return c.begun, c.gone
}
