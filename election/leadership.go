package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/txn"
)

// Leadership is one tenure. It exists only after the proof of the win, and once
// it has ended it stays so. All methods are safe for concurrent use.
//
// Invariant: Token() > 0, and greater than that of every earlier tenure (G2).
//
// Invariant: ctx, the leading context, ends before anything is sent that deletes the key, and
// with the session.
type Leadership struct {
	c     *Candidate
	token eldest.Token
	ctx   context.Context
	end   context.CancelCauseFunc
	// drained is when it was given up by Drain; zero if it was not. leads counts the calls
	// of Lead that have not resigned yet. The mutex guards both.
	drained time.Time
	leads   int
}

// Election returns the election's name.
func (l *Leadership) Election() string { return l.c.cfg.Election }

// Key returns the leader's key.
func (l *Leadership) Key() string { return l.c.key }

// Token returns the create revision of the leader's key, by which this tenure is
// told from all others.
func (l *Leadership) Token() eldest.Token { return l.token }

// Context returns the leading context: it ends with the tenure, and before the
// server can expire the lease (G3). context.Cause says why; it wraps
// eldest.ErrDeposed (the key was removed or overwritten), eldest.ErrSessionLost,
// eldest.ErrSuspended (see lease.Heartbeat; the key stands: campaign again),
// eldest.ErrResigned, eldest.ErrDraining, or eldest.ErrClosed (the candidate, the session
// or the etcd client was closed; after the end of the client alone the key may be there
// until the lease expires).
func (l *Leadership) Context() context.Context { return l.ctx }

// Done returns a channel that is closed when the tenure ends.
func (l *Leadership) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns nil during the tenure, then why it ended; always the same.
func (l *Leadership) Err() error {
	l.holds(0) // reads the clock: what has passed ends the tenure
	return context.Cause(l.ctx)
}

// Holds reports whether nobody else can lead for another d: whether an action
// that takes at most d from now is over in time. It reads the clock, sends
// nothing, and tells the truth at the first call after the process or machine was
// stopped, before any timer has fired (G3). What it cannot know is a removal of
// the key from outside whose news is still under way; the guard knows.
func (l *Leadership) Holds(d time.Duration) bool {
	return l.holds(d) && l.ctx.Err() == nil
}

// holds reports whether the lease and the heartbeats are certain for another d, and reads the clock
// for both.
func (l *Leadership) holds(d time.Duration) bool {
	c := l.c
	if !c.cfg.Session.Holds(d) {
		return false
	}
	if !c.session.Beats() {
		return true
	}
	c.session.Lock()
	defer c.session.Unlock()
	return c.machine.Certain(d)
}

// Guard returns the guard of this tenure (G4). It refuses on this side as soon as
// the tenure has ended here.
func (l *Leadership) Guard() txn.Guard {
	return txn.Guard{Election: l.c.cfg.Election, Key: l.c.key, Token: l.Token(), Alive: l.alive}
}

// Txn returns a guarded transaction on the candidate's client; see txn.Guard.Txn.
func (l *Leadership) Txn(ctx context.Context) clientv3.Txn { return l.Guard().Txn(ctx, l.c.cfg.KV) }

// KV returns the candidate's client, guarded; see txn.Guard.KV.
func (l *Leadership) KV() clientv3.KV { return l.Guard().KV(l.c.cfg.KV) }

// alive returns why the tenure has ended, or nil.
func (l *Leadership) alive() error {
	if !l.holds(0) || l.ctx.Err() != nil {
		return fmt.Errorf("%w: %w", eldest.ErrNotLeading, reason(context.Cause(l.ctx)))
	}
	return nil
}

// Proclaim replaces the leader's value, in one request; the token stays. After
// the tenure it returns an error that wraps eldest.ErrNotLeading and the cause of
// the end, each time. If it fails the old value stays, unless the error wraps
// eldest.ErrOutcomeUnknown: then the new one may be there, or come late, even after
// a later proclaim. Proclaim it again, in doubt.
func (l *Leadership) Proclaim(ctx context.Context, value []byte) error {
	err := l.alive()
	if err == nil {
		err = l.c.proclaim(ctx, l.token, value)
		if ended := l.alive(); err != nil && ended != nil {
			if errors.Is(err, eldest.ErrOutcomeUnknown) {
				ended = fmt.Errorf("%w: %w", ended, err)
			}
			err = ended
		}
	}
	return l.c.failed("proclaim", err)
}

// Resign ends the tenure: the leading context first, then the key is deleted, and
// the successor leads. It blocks until the server has confirmed that, the session
// has ended, ctx has, or etcd refuses; it returns nil, the session's cause, ctx's cause or
// the refusal. Where the key may be there still, it is removed in the background while
// the session lives, however often etcd refuses, and Resign may be called again: it asks
// etcd again. Resigning again, or after the candidate's Close, is harmless. After a
// tenure that ended otherwise it returns an error that wraps eldest.ErrNotLeading and the
// cause.
//
// Code that leads should have returned before: what it does after this call may
// overlap with the successor.
func (l *Leadership) Resign(ctx context.Context) error {
	if ctx == nil {
		return l.c.failed("resign", fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	return l.c.failed("resign", l.resign(ctx))
}

// present reports whether the tenure's key stands, and no later Leadership has it: one that was suspended is
// followed by another one with its token. The caller holds the mutex.
func (l *Leadership) present() bool {
	c := l.c
	return c.last == l && c.life.token == l.token && (c.won() || c.phase() == core.Proving)
}

func (l *Leadership) resign(ctx context.Context) error {
	c := l.c
	c.lock()
	if !l.present() {
		present, ended := c.life.token == l.token, context.Cause(l.ctx)
		own := errors.Is(ended, eldest.ErrResigned) || errors.Is(ended, eldest.ErrClosed) && c.closed || !l.drained.IsZero()
		switch {
		case !own:
			c.unlock()
			return fmt.Errorf("%w: %w", eldest.ErrNotLeading, reason(ended))
		case !present:
			c.unlock()
			return nil // its key has gone since
		case c.stands(): // the next campaign begins when the key is gone
			wait := c.machine.Leave(nil, nil)
			c.unlock()
			return wait(ctx)
		}
	}
	wait := c.leave(eldest.ErrResigned)
	c.unlock()
	return wait(ctx)
}

// Proclaim replaces the value of a candidate that waits or leads, in one request;
// its place in the queue stays. Errors: eldest.ErrNotRegistered, with the cause of
// the end where the key was lost, the same each time, and while the candidate steps
// back; eldest.ErrNotLeading after Leadership.Drain; eldest.ErrOutcomeUnknown; what etcd
// refused.
func (c *Candidate) Proclaim(ctx context.Context, value []byte) error {
	token, err := c.current()
	if err == nil {
		err = c.proclaim(ctx, token, value)
		if _, ended := c.current(); err != nil && ended != nil {
			err = ended
		}
	}
	return c.failed("proclaim", err)
}

// current returns the token of the candidacy or tenure, or why there is none.
func (c *Candidate) current() (eldest.Token, error) {
	c.lock()
	defer c.unlock()
	switch {
	case c.closed:
		return 0, eldest.ErrClosed
	case c.phase() == core.Draining:
		return 0, fmt.Errorf("%w: %w", eldest.ErrNotLeading, reason(context.Cause(c.last.ctx)))
	case !c.registered():
		return 0, c.notRegistered()
	}
	return c.life.token, nil
}

func (c *Candidate) proclaim(ctx context.Context, token eldest.Token, value []byte) error {
	if ctx == nil {
		return fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	}
	if err := checkValue(value); err != nil {
		return err
	}
	if rpcerr.Closed(c.cfg.KV) {
		return fmt.Errorf("%w: the etcd client", eldest.ErrClosed)
	}
	entry := c.cfg.entry()
	entry.Value = append([]byte(nil), value...)
	once, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	_, err := txn.Proclaim(once, c.cfg.KV, entry, token)
	if rpcerr.ClientClosed(once, c.cfg.KV, err) {
		err = fmt.Errorf("%w: the etcd client, during the request: %w", eldest.ErrClosed, err)
	}
	c.lock()
	defer c.unlock()
	present := c.life.token == token && c.registered()
	switch {
	case errors.Is(err, eldest.ErrDeposed) && present:
		c.machine.Do(core.Event{Kind: core.KeyDeleted})
	case err == nil && !present && (c.step != nil || c.stands()):
		// The value went with the old key, and the new one may hold the value before it.
		return fmt.Errorf("%w: %w", eldest.ErrNotRegistered, eldest.ErrRequeued)
	case err == nil:
		c.user.Entry = entry
	}
	return err
}
