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

// Leadership is one tenure. It exists only after the proof of the win; once ended, it does not
// begin again. All methods are safe for concurrent use.
//
// Invariant: Token() > 0, and greater than the token of every earlier tenure (G2).
//
// Invariant: ctx, the leading context, ends before any request is sent that deletes the key, and
// with the session.
type Leadership struct {
	c     *Candidate
	token eldest.Token
	ctx   context.Context
	end   context.CancelCauseFunc
	// drained is when Drain gave it up; zero if it did not. leads is the number of calls of Lead
	// that have not resigned yet. The mutex guards both.
	drained time.Time
	leads   int
}

// Election returns the election's name.
func (l *Leadership) Election() string { return l.c.cfg.Election }

// Key returns the leader's key.
func (l *Leadership) Key() string { return l.c.key }

// Token returns the create revision of the leader's key, which identifies this tenure.
func (l *Leadership) Token() eldest.Token { return l.token }

// Context returns the leading context: it ends with the tenure, and before the server can expire
// the lease (G3). context.Cause is the reason; it wraps eldest.ErrDeposed (the key was removed or
// overwritten), eldest.ErrSessionLost, eldest.ErrSuspended (see lease.Heartbeat; the key remains:
// campaign again), eldest.ErrResigned, eldest.ErrDraining, or eldest.ErrClosed (the candidate, the
// session or the etcd client was closed; if only the client was closed, the key may remain until
// the lease expires).
func (l *Leadership) Context() context.Context { return l.ctx }

// Done returns a channel that is closed when the tenure ends.
func (l *Leadership) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns nil during the tenure, then the reason of its end, which does not change.
func (l *Leadership) Err() error {
	l.holds(0) // reads the clock, which may end the tenure
	return context.Cause(l.ctx)
}

// Holds reports whether no other candidate can lead for another d, so that an action that takes at
// most d from now ends in time. It reads the clock and sends nothing. The first call after the
// process or machine was stopped is already correct, before any timer has fired (G3). It does not
// know of a removal of the key by another client until the event arrives; the guard does.
func (l *Leadership) Holds(d time.Duration) bool {
	return l.holds(d) && l.ctx.Err() == nil
}

// holds reports whether the lease and the heartbeats are certain for another d. It reads the clock
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

// Guard returns the guard of this tenure (G4). It refuses locally as soon as this process has ended
// the tenure.
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

// Proclaim replaces the leader's value, in one request; the token stays the same. After the tenure
// every call returns an error that wraps eldest.ErrNotLeading and the cause of the end. If it fails
// the old value stays, unless the error wraps eldest.ErrOutcomeUnknown: then the new value may be
// there, or be written later, even after a later Proclaim. If in doubt, call Proclaim again.
func (l *Leadership) Proclaim(ctx context.Context, value []byte) error {
	err := l.alive()
	if err == nil {
		err = l.c.proclaim(ctx, l.token, value)
		err = over(err, l.alive())
	}
	return l.c.failed("proclaim", err)
}

// Resign ends the tenure: the leading context first, then the key is deleted, and the successor
// leads. It blocks until the server has confirmed the deletion, the session has ended, ctx has
// ended, or etcd refuses; it returns nil, the session's cause, ctx's cause or etcd's error. If the
// key may still exist, it is removed in the background during the session, however often etcd
// refuses, and Resign may be called again: it sends a new request. Resigning again, or after the
// candidate's Close, is harmless. After a tenure that ended otherwise it returns an error that
// wraps eldest.ErrNotLeading and the cause.
//
// Code that leads should have returned before: its work after this call may overlap with the
// successor's.
func (l *Leadership) Resign(ctx context.Context) error {
	if ctx == nil {
		return l.c.failed("resign", fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	return l.c.failed("resign", l.resign(ctx))
}

// present reports whether the tenure's key exists and belongs to this Leadership: after a
// suspension a later Leadership has the same token. The caller holds the mutex.
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
			return nil // its key has been deleted since
		case c.stands(): // the next campaign begins when the key is deleted
			wait := c.machine.Leave(nil, nil)
			c.unlock()
			return l.deleted(wait(ctx))
		}
	}
	wait := c.leave(eldest.ErrResigned)
	c.unlock()
	return l.deleted(wait(ctx))
}

// deleted returns the session's cause if a wait for the deletion of the key ended with the session,
// before etcd had confirmed the deletion; else the error of the wait.
func (l *Leadership) deleted(err error) error {
	session := l.c.cfg.Session.Context()
	if err == nil && session.Err() != nil && l.c.session.Doomed(l.token) {
		err = context.Cause(session)
	}
	return err
}

// Proclaim replaces the value of a candidate that waits or leads, in one request; it keeps its
// position in the queue. Errors: eldest.ErrNotRegistered during a requeue and, always with the same
// cause, after the key was lost; eldest.ErrNotLeading after Leadership.Drain;
// eldest.ErrOutcomeUnknown; the error of etcd when the request was
// refused.
func (c *Candidate) Proclaim(ctx context.Context, value []byte) error {
	token, err := c.current()
	if err == nil {
		err = c.proclaim(ctx, token, value)
		_, ended := c.current()
		err = over(err, ended)
	}
	return c.failed("proclaim", err)
}

// over returns the error of a request that failed with err, if the candidacy or the tenure ended
// meanwhile, with ended: that is the reason, but the outcome of the request may be unknown nevertheless.
func over(err, ended error) error {
	switch {
	case err == nil || ended == nil:
		return err
	case errors.Is(err, eldest.ErrOutcomeUnknown):
		return fmt.Errorf("%w: %w", ended, err)
	}
	return ended
}

// current returns the token of the candidacy or tenure, or an error that says why there is none.
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
		// The value was deleted with the old key, and the new key may have the value before it.
		return fmt.Errorf("%w: %w", eldest.ErrNotRegistered, eldest.ErrRequeued)
	case err == nil:
		c.user.Entry = entry
	}
	return err
}
