package routing

import (
	"context"
	"sync"
	"time"
)

// Calls are calls that end together: those in one tenure, those that were forwarded to one leader,
// or those on one connection. Made by NewCalls. Safe for concurrent use.
//
// Invariant: a call runs only between a Begin that returned nil and its End, and no Begin
// returns nil after Close or the end of the context.
type Calls struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	expired func() error

	mu      sync.Mutex
	closed  error
	running int
	awaited int // those of them that Drain waits for
	ended   sync.Cond
}

// NewCalls makes Calls whose context ends with ctx. expired reads the clock and returns why no call
// may begin, or nil.
func NewCalls(ctx context.Context, expired func() error) *Calls {
	c := &Calls{expired: expired}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.ended.L = &c.mu
	return c
}

// Never is the expired function of calls that no clock ends.
func Never() error { return nil }

// Context returns the context that ends with the calls; its cause is the reason.
func (c *Calls) Context() context.Context { return c.ctx }

// Cause returns why the context ended, or nil.
func (c *Calls) Cause() error { return context.Cause(c.ctx) }

// Over returns why no call may begin, or nil.
func (c *Calls) Over() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over()
}

func (c *Calls) over() error {
	if c.closed != nil {
		return c.closed
	}
	if err := c.Cause(); err != nil {
		return err
	}
	return c.expired()
}

// Begin admits a call, or returns why it may not run (I9). Drain waits for it if awaited is set.
// Each Begin that returned nil is followed by one End with the same argument.
func (c *Calls) Begin(awaited bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.over(); err != nil {
		return err
	}
	c.count(awaited, 1)
	return nil
}

// End ends a call.
func (c *Calls) End(awaited bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count(awaited, -1)
	c.ended.Broadcast()
}

func (c *Calls) count(awaited bool, n int) {
	c.running += n
	if awaited {
		c.awaited += n
	}
}

// Running returns how many calls run.
func (c *Calls) Running() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// Close lets no further call begin. Only the first reason counts.
func (c *Calls) Close(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed == nil {
		c.closed = reason
	}
}

// Cancel ends the context. Only the first cause counts.
func (c *Calls) Cancel(cause error) { c.cancel(cause) }

// Drain blocks until no awaited call runs, or the limit has passed, or ctx or the context of the
// calls ends.
func (c *Calls) Drain(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended.Broadcast()
	})()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.awaited > 0 && ctx.Err() == nil {
		c.ended.Wait()
	}
}

// Finish ends the context and blocks until no call runs.
func (c *Calls) Finish(cause error) {
	c.cancel(cause) // Begin checks it under the lock
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running > 0 {
		c.ended.Wait()
	}
}
