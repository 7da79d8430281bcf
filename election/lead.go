package election

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest"
)

// Lead runs f during this tenure and resigns when f returns. The context of f has ctx's values and
// ends with ctx or the tenure, whichever is first, with the cause of that one. Lead waits for f,
// however long it takes: while f runs the key is kept, so f should return when its context ends. It
// returns f's error, joined with the error of a failed resignation; the end of the tenure alone is
// no error. If the tenure is suspended (lease.Heartbeat), the key is kept, and Lead returns an
// error that wraps eldest.ErrSuspended: campaign again, or close the candidate.
//
// When ctx ends while etcd is unavailable, Lead stops waiting for the resignation after
// Config.Timeout and returns an error; the key is then removed in the background during the
// session.
//
// Two calls for one candidate, or for candidates that share a Config.Mutex, never overlap, not even
// over different tenures (G7): Lead first waits for an f of an earlier tenure to return. If this
// tenure ends before that, Lead returns the cause of its end without calling f. After Config.Drain
// it resigns, so that another candidate can lead, and returns an error that wraps eldest.ErrStuck.
func (l *Leadership) Lead(ctx context.Context, f func(ctx context.Context) error) (err error) {
	if ctx == nil || f == nil {
		return l.c.failed("lead", fmt.Errorf("%w: the context or the function is nil", eldest.ErrInvalid))
	}
	l.counted(+1)
	defer l.counted(-1) // after the resignation
	leading, end := l.leading(ctx)
	defer end()
	patience := time.NewTimer(l.c.cfg.Drain)
	defer patience.Stop()
	mutex := l.c.mutexOf()
	for waiting := true; waiting; {
		select {
		case mutex.taken <- struct{}{}:
			waiting = false
		case <-leading.Done():
			return errors.Join(l.c.failed("lead", context.Cause(leading)), l.resignAfter(ctx))
		case <-patience.C:
			// No time limit for a function of this tenure. And the process may have been stopped: if the
			// tenure has ended meanwhile, or no function runs any more, that counts and not the timer.
			if holder := mutex.holder.Load(); holder == nil || holder == l || leading.Err() != nil {
				patience.Reset(l.c.cfg.Drain)
				continue
			}
			stuck := fmt.Errorf("%w: the function of an earlier tenure, waited for %v", eldest.ErrStuck, l.c.cfg.Drain)
			return errors.Join(l.c.failed("lead", stuck), l.resignAfter(ctx))
		}
	}
	patience.Stop()
	mutex.holder.Store(l)
	// select may have chosen the mutex although leading had ended; and the end of ctx reaches
	// leading a moment later.
	if ended := errors.Join(context.Cause(ctx), reason(l.Err())); ended != nil {
		mutex.give()
		return errors.Join(l.c.failed("lead", ended), l.resignAfter(ctx))
	}
	// Deferred, so that a panic in f does not keep the key.
	defer func() {
		mutex.give()
		err = errors.Join(err, l.resignAfter(ctx))
	}()
	return f(leading)
}

// counted counts a call of Lead that begins (+1) or has ended (-1).
func (l *Leadership) counted(change int) {
	l.c.lock()
	defer l.c.unlock()
	l.leads += change
}

// resignAfter resigns. The caller's context has often ended, or ends meanwhile; then it uses a context
// of its own. A tenure that is suspended keeps its key if ctx has not ended.
func (l *Leadership) resignAfter(ctx context.Context) error {
	if ctx.Err() == nil && l.suspended() {
		return context.Cause(l.ctx)
	}
	var err error
	if ctx.Err() == nil {
		err = l.Resign(ctx)
	}
	if ctx.Err() != nil { // before, or during the resignation
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.c.cfg.Timeout)
		defer cancel()
		err = l.Resign(bounded)
	}
	if err != nil && !errors.Is(err, eldest.ErrNotLeading) {
		return err
	}
	return nil
}

// suspended reports whether the tenure is suspended and its key may lead again.
func (l *Leadership) suspended() bool {
	l.c.lock()
	defer l.c.unlock()
	return l.c.life.token == l.token && l.c.suspended()
}

// Mutex allows one lead function to run at a time, over any number of candidates. Make one with
// NewMutex for each function that must not overlap itself, and share it between the candidates of
// successive sessions.
type Mutex struct {
	taken chan struct{}
	// holder is the tenure whose function runs; nil if none runs.
	holder atomic.Pointer[Leadership]
}

// give releases the mutex.
func (t *Mutex) give() {
	t.holder.Store(nil)
	<-t.taken
}

// mutexOf returns the candidate's mutex, made at the first use unless Config has one.
func (c *Candidate) mutexOf() *Mutex {
	c.lock()
	defer c.unlock()
	if c.cfg.Mutex == nil {
		c.cfg.Mutex = NewMutex()
	}
	return c.cfg.Mutex
}

// NewMutex returns a mutex that is not held.
func NewMutex() *Mutex { return &Mutex{taken: make(chan struct{}, 1)} }

// WithValues is Context with the values of another context, whose end and deadline are ignored. The
// returned context ends with the tenure: it is derived from the tenure's own context, so it has
// ended before anything is sent that lets another candidate lead (G3). A nil context has no values.
func (l *Leadership) WithValues(of context.Context) context.Context {
	if of == nil {
		return l.ctx
	}
	return withValues{Context: l.ctx, of: of}
}

// withValues is a context with the values of another one.
type withValues struct {
	context.Context
	of context.Context
}

// Value reads the tenure's context first: package context finds its own internal values there.
func (c withValues) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.of.Value(key)
}

// leading returns the context of a lead function. The end of the caller's context reaches it on a
// goroutine, a moment later, which is harmless.
func (l *Leadership) leading(ctx context.Context) (leading context.Context, end func()) {
	leading, cancel := context.WithCancelCause(l.WithValues(ctx))
	detach := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return withDeadline{Context: leading, of: ctx}, func() {
		detach()
		cancel(nil)
	}
}

// withDeadline is a context that reports the deadline of another context, which must also end it:
// package context sets no timers for children of a context that ends sooner.
type withDeadline struct {
	context.Context
	of context.Context
}

// Deadline returns the other context's deadline: a tenure has none that is known in advance.
func (c withDeadline) Deadline() (time.Time, bool) { return c.of.Deadline() }
