package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/serial"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/txn"
)

// Candidate stands in one election with one session, as often as one likes, once
// at a time. Made by New, ended by Close. All methods are safe for concurrent use.
type Candidate struct {
	cfg    Config
	key    string
	source *watch.Source
	hooks  serial.Queue
	// watches are the watches of own keys; each ends with its standing.
	watches sync.WaitGroup

	mu sync.Mutex
	// entry carries the value that was proclaimed last.
	entry txn.Entry
	// call is the one that registers or waits; nil while there is none.
	call *calling
	// previous is the last one that returned.
	previous *calling
	// standing is the present candidacy or tenure; nil when idle.
	// Invariant: at most one, and its session claim is held.
	standing *standing
	// last is the newest one that there was, ended or not.
	last *standing
	// backing is the step back that is asked for or under way; nil if there is none.
	backing *backing
	// changed is closed at the next change of the above; nil while nobody asks.
	changed chan struct{}
	closed  bool
}

// New makes a candidate. It sends nothing. The error wraps eldest.ErrInvalid.
func New(cfg Config) (*Candidate, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, &eldest.OpError{Op: "new candidate", Election: cfg.Election, Err: err}
	}
	entry := cfg.entry()
	c := &Candidate{cfg: cfg, key: entry.Key(), source: cfg.source(), entry: entry}
	if cfg.Hooks.Interrupted != nil {
		c.source.Interrupted = func(key string, reason error) {
			call(c, cfg.Hooks.Interrupted, InterruptedEvent{Election: cfg.Election, Key: key, Reason: reason, At: time.Now()})
		}
	}
	c.source.Failed = c.retrying("watch")
	return c, nil
}

// Key returns the key with which the candidate stands, whether it does or not.
func (c *Candidate) Key() string { return c.key }

// Election returns the election's name.
func (c *Candidate) Election() string { return c.cfg.Election }

// Close ends a campaign (Campaign then returns an error that wraps
// eldest.ErrClosed) or a tenure, removes the key, and waits for everything that
// goes on in the background, hooks included. It blocks until that is done, the
// session has ended, or ctx has; in the last case it returns ctx's error, the key
// is removed in the background while the session lives, and Close may be called
// again. The session stays open: it belongs to the caller; if a registration may
// still arrive late, it goes on watching for that.
func (c *Candidate) Close(ctx context.Context) error {
	if ctx == nil {
		return c.failed("close candidate", fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	c.mu.Lock()
	c.closed = true
	s, last, call := c.standing, c.last, c.call
	call.interrupt(eldest.ErrClosed)
	c.turned()
	c.mu.Unlock()
	var err error
	if s != nil {
		if err = c.leave(ctx, s, eldest.ErrClosed); errors.Is(err, eldest.ErrNotLeading) {
			err = nil // it had ended by itself
		}
	}
	if err == nil && call != nil {
		err = retry.Wait(ctx, call.done)
		c.mu.Lock()
		last = c.last // the call may have stood for a moment
		c.mu.Unlock()
	}
	if err == nil && last != nil {
		err = c.depart(ctx, last)
	}
	if err == nil {
		err = c.settle(ctx)
	}
	if err == nil {
		c.watches.Wait() // their contexts have ended
		err = c.hooks.Wait(ctx)
	}
	return c.failed("close candidate", err)
}

// calling is a call that registers, waits or steps back. The candidate's mu guards what
// is in it.
type calling struct {
	// caller is the context of whoever called.
	caller context.Context
	abort  context.CancelCauseFunc
	detach func() bool
	// told is why Withdraw or Close ended it, or tried to; nil if neither did.
	told error
	// back says that it is a StepBack of a candidate that nobody waits for.
	back bool
	done chan struct{} // closed when it has returned, all but
}

// interrupt ends the call, if there is one. The caller holds the candidate's mu.
func (c *calling) interrupt(cause error) {
	if c != nil {
		c.told = cause
		c.abort(cause)
	}
}

// attempt gives the call a context: it ends with the caller's, with the session, and by
// abort. One that there was before has ended. The caller holds mu.
func (c *Candidate) attempt(call *calling) context.Context {
	attempt, abort := context.WithCancelCause(call.caller)
	call.abort = abort
	call.detach = context.AfterFunc(c.cfg.Session.Context(), func() { abort(c.cfg.Session.Err()) })
	return attempt
}

// begin starts the one call that may register or wait. The returned context ends
// with ctx, with the session, and by interrupt; end must be called.
func (c *Candidate) begin(ctx context.Context, register bool) (attempt context.Context, end func(), err error) {
	if ctx == nil {
		return nil, nil, fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	}
	over := c.cfg.Session.Err() // reads the clock
	c.mu.Lock()
	defer c.mu.Unlock()
	for !register && c.call != nil && c.call.back {
		// What stands is about to stand elsewhere, and is waited for there.
		back := c.call.done
		c.mu.Unlock()
		err := retry.Wait(ctx, back)
		c.mu.Lock()
		if err != nil {
			return nil, nil, err
		}
	}
	c.reap()
	s := c.standing
	switch {
	case c.closed:
		return nil, nil, eldest.ErrClosed
	case c.call != nil:
		return nil, nil, eldest.ErrCampaigning
	case register && s.drained() && s.tenure.leads == 0: // register ends it
	case s != nil && s.won():
		return nil, nil, eldest.ErrLeading
	case s != nil && register:
		return nil, nil, fmt.Errorf("%w: registered with token %d", eldest.ErrCampaigning, s.token)
	case s == nil && !register:
		return nil, nil, c.notRegistered(c.last)
	}
	if over != nil && register {
		return nil, nil, over
	}
	attempt, end = c.calls(&calling{caller: ctx})
	return attempt, end, nil
}

// calls makes a call the present one. The caller holds mu, and calls end without it.
func (c *Candidate) calls(call *calling) (attempt context.Context, end func()) {
	call.done = make(chan struct{})
	c.call = call
	return c.attempt(call), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		call.detach()
		call.abort(nil)
		if c.call == call {
			c.call = nil
		}
		c.previous = call
		close(call.done)
		c.turned()
	}
}

// reap disposes of a standing that has ended but was not tidied up after yet, as
// its watch would do in a moment. The caller holds mu.
func (c *Candidate) reap() {
	s := c.standing
	if s == nil || !s.ended() {
		return
	}
	c.mu.Unlock()
	c.lost(s, context.Cause(s.ctx))
	c.mu.Lock()
}

// notRegistered says so, and why the last standing ended, if there was one.
func (c *Candidate) notRegistered(last *standing) error {
	if last == nil || !last.ended() {
		return eldest.ErrNotRegistered
	}
	return fmt.Errorf("%w: %w", eldest.ErrNotRegistered, reason(context.Cause(last.ctx)))
}

// current returns the candidacy or tenure, or why there is none.
func (c *Candidate) current() (*standing, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reap()
	switch {
	case c.closed:
		return nil, eldest.ErrClosed
	case c.standing == nil:
		return nil, c.notRegistered(c.last)
	}
	return c.standing, nil
}

// failed says of an error which operation it ended. An error that says so already,
// of the same candidate or its session, is not wrapped twice.
func (c *Candidate) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &eldest.OpError{
		Op: op, Election: c.cfg.Election, Key: c.key, Lease: int64(c.cfg.Session.ID()), Err: reason(err),
	}
}

// reason returns what is inside an OpError, and other errors as they are.
func reason(err error) error {
	if op, ok := err.(*eldest.OpError); ok { //nolint:errorlint // only the outermost one is taken off
		return op.Err
	}
	return err
}
