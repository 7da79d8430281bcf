package curator

import (
	"context"
	"sync"

	"google.golang.org/grpc"
)

// call is the stream that a handler is given: its messages decoded, its context ending
// with the tenure as well as with the caller.
type call struct {
	decoding
	ctx context.Context

	// late returns an error once the tenure is over, read from the clock. The first message
	// is where a unary handler begins, and a stream's has something to do; it may have come
	// long after the call.
	late func() error

	mu       sync.Mutex
	busy     int   // receives and sends under way
	received bool  // a message has come as far as the handler
	gone     error // what became of the call when the tenure ended; nil: nothing yet
}

// newCall returns the stream of a call to a method, over when ctx ends and not before.
func newCall(ctx context.Context, stream grpc.ServerStream, m *method) *call {
	many := m.stream != nil && m.stream.ClientStreams
	return &call{
		decoding: decoding{ServerStream: stream, codec: codecOf(ctx), many: many},
		ctx:      ctx, late: func() error { return nil },
	}
}

// Context returns the call's context; see grpc.ServerStream.
func (c *call) Context() context.Context { return c.ctx }

// RecvMsg fails from the end of the tenure on, also where a message has come by then.
func (c *call) RecvMsg(m any) error {
	if err := c.enter(); err != nil {
		return err
	}
	err := c.decoding.RecvMsg(m)
	return c.leave(err, err == nil)
}

// SendMsg fails from the end of the tenure on.
func (c *call) SendMsg(m any) error {
	if err := c.enter(); err != nil {
		return err
	}
	return c.leave(c.decoding.SendMsg(m), false)
}

func (c *call) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil {
		c.busy++
	}
	return c.gone
}

func (c *call) leave(err error, received bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	if received && !c.received && c.gone == nil {
		c.gone = c.late()
	}
	if c.gone != nil {
		return c.gone
	}
	c.received = c.received || received
	return err
}

// lose ends the traffic of the call with the error that refuse makes, and returns it.
// refuse is told whether any message has come as far as the handler: none will, after
// this. busy says that the handler is in the middle of a receive or a send.
func (c *call) lose(refuse func(received bool) error) (gone error, busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil { // or the handler has it already, and will return it
		c.gone = refuse(c.received)
	}
	return c.gone, c.busy > 0
}

// begun reports whether any message has come as far as the handler.
func (c *call) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received
}

// over returns what became of the call when the tenure ended, or nil.
func (c *call) over() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}
