package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
)

// Retire gives leadership up and keeps the key: the leading context ends now, with
// eldest.ErrRetired, which wraps cause if that is not nil, and Holds, the guard and
// Proclaim refuse from now on. Nobody leads until the key goes: by Resign, by Close, by
// Lead when its function has returned, by the candidate's next Campaign, or with the
// session. So code that leads has time
// to return while no successor runs beside it, and a guarded write that it still sends
// is refused on this side. (One that is under way already may still be applied, as no
// other tenure has begun: G4.)
//
// Retire sends nothing and does not block. Calling it again, or after the end of the
// tenure, is harmless; the first cause counts.
func (l *Leadership) Retire(cause error) {
	_ = l.c.cfg.Session.Holds(0) // reads the clock: what has passed has ended the tenure
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if l.ctx.Err() != nil {
		return
	}
	why := eldest.ErrRetired
	if cause != nil {
		why = fmt.Errorf("%w: %w", eldest.ErrRetired, cause)
	}
	l.retired = time.Now()
	l.s.claim.Spend(l.s.token) // it does not come back, not even by lease.Resume
	l.end(l.c.failed("candidate", why))
	l.c.turned()
}

// Retire retires the present tenure, if it is the one that token names; see
// Leadership.Retire. It is for whoever has the candidate and not the Leadership: what
// answers requests from outside. Retiring the same tenure again is harmless. Errors:
// eldest.ErrNotLeading, with the cause where the tenure has ended otherwise.
func (c *Candidate) Retire(token eldest.Token, cause error) error {
	_ = c.cfg.Session.Holds(0)
	c.mu.Lock()
	var l *Leadership
	if c.last != nil && c.last.token == token {
		l = c.last.tenure
	}
	c.mu.Unlock()
	err := eldest.ErrNotLeading
	if l != nil {
		l.Retire(cause)
		c.mu.Lock()
		retired := !l.retired.IsZero()
		c.mu.Unlock()
		if retired {
			return nil
		}
		err = fmt.Errorf("%w: %w", err, reason(context.Cause(l.ctx)))
	}
	return c.failed("retire", err)
}

// retired returns why a tenure may do nothing any more although its key stands, or nil.
func (c *Candidate) retired(s *standing) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.drained() {
		return nil
	}
	return fmt.Errorf("%w: %w", eldest.ErrNotLeading, reason(context.Cause(s.tenure.ctx)))
}

// drained reports whether s is a tenure that was retired. The caller holds the candidate's
// mu.
func (s *standing) drained() bool {
	return s != nil && s.tenure != nil && !s.tenure.retired.IsZero()
}

// endDrained resigns a retired tenure, if there is one: nothing else would, where no
// function runs in it under Lead. It returns ctx's cause, or why its key could not be
// removed.
func (c *Candidate) endDrained(ctx context.Context) error {
	c.mu.Lock()
	s := c.standing
	drained := s.drained()
	c.mu.Unlock()
	if !drained {
		return nil
	}
	if err := c.leave(ctx, s, eldest.ErrResigned); err != nil && !errors.Is(err, eldest.ErrNotLeading) {
		return err
	}
	return nil
}
