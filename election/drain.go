package election

import (
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
)

// Drain gives leadership up and keeps the key: the leading context ends now, with
// eldest.ErrDraining, which wraps cause if that is not nil, and Holds, the guard and Proclaim
// refuse from now on. No candidate leads until the key is deleted: by Resign, by Close, by Lead
// when its function has returned, by the candidate's next Campaign, or with the session. So code
// that leads has time to return while no successor runs, and the guard refuses a write that it
// still sends. (A write that was sent before may still be applied, as no other tenure has begun:
// G4.) With heartbeats (lease.Heartbeat) a successor evicts the candidate if its heartbeats stop,
// as it evicts a leader.
//
// Drain sends nothing and does not block. Calling it again, or after the end of the tenure, is
// harmless; the first cause counts.
func (l *Leadership) Drain(cause error) {
	l.c.lock()
	defer l.c.unlock()
	l.drain(cause)
}

// drain is Drain. The caller holds the mutex.
func (l *Leadership) drain(cause error) {
	if !l.present() || !l.drained.IsZero() {
		return
	}
	why := eldest.ErrDraining
	if cause != nil {
		why = fmt.Errorf("%w: %w", eldest.ErrDraining, cause)
	}
	l.drained = time.Now()
	if l.c.phase() == core.Proving { // suspended, and its win is being proven again
		_ = l.c.leave(why)
		return
	}
	l.c.machine.Do(core.Event{Kind: core.Drain, Err: why})
}

// Drain drains the current tenure if it has this token; see Leadership.Drain. It is for code that
// has the candidate and not the Leadership, such as a handler of requests from outside. Draining
// the same tenure again is harmless. Errors: eldest.ErrNotLeading, with the cause if the tenure has
// ended otherwise.
func (c *Candidate) Drain(token eldest.Token, cause error) error {
	c.lock()
	defer c.unlock()
	l := c.last
	if l == nil || l.token != token {
		return c.failed("drain", eldest.ErrNotLeading)
	}
	l.drain(cause)
	if !l.drained.IsZero() {
		return nil
	}
	return c.failed("drain", fmt.Errorf("%w: %w", eldest.ErrNotLeading, reason(context.Cause(l.ctx))))
}
