package election

import (
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
)

// Drain gives leadership up and keeps the key: the leading context ends now, with
// eldest.ErrDraining, which wraps cause if that is not nil, and Holds, the guard and
// Proclaim refuse from now on. Nobody leads until the key goes: by Resign, by Close, by
// Lead when its function has returned, by the candidate's next Campaign, or with the
// session. So code that leads has time
// to return while no successor runs beside it, and a guarded write that it still sends
// is refused on this side. (One that is under way already may still be applied, as no
// other tenure has begun: G4.)
// With heartbeats (lease.Heartbeat) a successor evicts the candidate all the same if those stop, as it
// would one that leads.
//
// Drain sends nothing and does not block. Calling it again, or after the end of the
// tenure, is harmless; the first cause counts.
func (l *Leadership) Drain(cause error) {
	l.c.lock()
	defer l.c.unlock()
	l.drain(cause)
}

// drain does so. The caller holds the mutex.
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

// Drain drains the present tenure, if it is the one that token names; see
// Leadership.Drain. It is for whoever has the candidate and not the Leadership: what
// answers requests from outside. Retiring the same tenure again is harmless. Errors:
// eldest.ErrNotLeading, with the cause where the tenure has ended otherwise.
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
