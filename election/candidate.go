package election

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/loop"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/serial"
)

// Candidate campaigns in one election with one session, any number of times, one campaign at a
// time. Made by New, ended by Close. All methods are safe for concurrent use.
//
// It is the public face of a state machine of package core, which package loop runs: calls become
// events, and steps become hook calls (tell.go), contexts and results.
type Candidate struct {
	cfg   Config // does not change, but for Mutex, which candidate.lock guards
	key   string
	hooks serial.Queue
	// session has the candidates of cfg.Session.
	session *loop.Session

	// The mutex of the session's candidates guards the fields below.
	user loop.User
	// machine runs the current candidacy, or ran the last one; nil before that. It may belong to
	// another candidate by now (mine).
	machine *loop.Candidate
	// call is the current call that registers or waits; nil if there is none.
	call chan struct{} // closed when it has returned
	// news is the tenure that the current call has won, ended or not; nil before that.
	news *Leadership
	// life is the current life of the key, or the last one.
	life life
	// last is the newest tenure, ended or not.
	last *Leadership
	// cause is why the last candidacy, or the attempt at one, ended; nil before that and during a
	// candidacy.
	cause error
	// step is the current requeue; nil if there is none.
	step *step
	// changed is closed at the next change of the fields above; nil until Changed is called.
	changed chan struct{}
	closed  bool
	// watches counts the goroutines of guarded watches. It grows only while closed is false.
	watches sync.WaitGroup
}

// New makes a candidate. It sends nothing. The error wraps eldest.ErrInvalid.
func New(cfg Config) (*Candidate, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, &eldest.OpError{Op: "new candidate", Election: cfg.Election, Err: err}
	}
	entry := cfg.entry()
	c := &Candidate{cfg: cfg, key: entry.Key(), session: loop.Of(cfg.Session)}
	c.user = loop.User{KV: cfg.KV, Queue: cfg.Ordering, Entry: entry, Source: cfg.source(), Policy: c.policy, Tell: c.tell}
	if cfg.ShouldYield != nil {
		c.user.Survey = (&steps{c: c}).survey
	}
	if cfg.Hooks.Interrupted != nil {
		c.user.Source.Interrupted = func(key string, reason error) {
			serial.Call(&c.hooks, cfg.Hooks.Interrupted, InterruptedEvent{Election: cfg.Election, Key: key, Reason: reason, At: time.Now()})
		}
	}
	if cfg.Hooks.Evicted != nil {
		c.user.Evicted = func(s loop.Silence) {
			serial.Call(&c.hooks, cfg.Hooks.Evicted, EvictedEvent{Election: cfg.Election, Key: c.key, Evicted: c.candidate(s.Elder), Silence: s.For, At: time.Now()})
		}
	}
	c.user.Source.Failed = c.retrying("watch")
	return c, nil
}

// Key returns the candidate's key, whether or not it exists.
func (c *Candidate) Key() string { return c.key }

// Election returns the election's name.
func (c *Candidate) Election() string { return c.cfg.Election }

// lock locks the mutex. Before that it reads the clock, which may end the session.
func (c *Candidate) lock() {
	_ = c.cfg.Session.Holds(0)
	c.session.Lock()
	c.session.Look()
}

func (c *Candidate) unlock() { c.session.Unlock() }

// mine reports whether the machine is this candidate's, now or in its last candidacy.
func (c *Candidate) mine() bool { return c.machine.Of(&c.user) }

// stands reports whether the candidate has a key or wants one.
func (c *Candidate) stands() bool { return c.mine() && c.machine.Busy() }

// registered reports whether the candidate has a key that it has not given up.
func (c *Candidate) registered() bool { return c.mine() && c.machine.State().Exists() }

// phase returns the machine's phase; Idle if the machine is not this candidate's.
func (c *Candidate) phase() core.Phase {
	if !c.mine() {
		return core.Idle
	}
	return c.machine.State().Phase
}

// won reports whether the candidate has a tenure whose key still exists.
func (c *Candidate) won() bool { return c.phase() == core.Leading || c.phase() == core.Draining }

// Close ends a campaign (Campaign then returns an error that wraps eldest.ErrClosed) or a tenure,
// removes the key, and waits for all background work, hooks and guarded watches included. It blocks
// until that is done, the session has ended, ctx has ended, or etcd refuses the removal; in the last
// two cases it returns ctx's or etcd's error, the key is removed in the background during the session,
// and Close may be called again. The session stays open: it belongs to the caller. If a registration
// may still arrive late, the session continues to watch for it. Once Close has returned nil no hook is
// called.
func (c *Candidate) Close(ctx context.Context) error {
	if ctx == nil {
		return c.failed("close candidate", fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	c.lock()
	c.closed = true
	c.turned()
	quit := c.quit(eldest.ErrClosed)
	c.unlock()
	err := quit(ctx)
	c.watches.Wait() // the tenure has ended, and they with it
	if err == nil {
		c.hooks.End() // the watch for a late registration continues, and calls none
		err = c.hooks.Wait(ctx)
	}
	return c.failed("close candidate", err)
}

// leave has the key deleted, if there is one, and returns a function that waits for that; see
// loop.Candidate.Leave. It is called with the mutex held, and the function without.
func (c *Candidate) leave(cause error) (wait func(ctx context.Context) error) {
	if c.machine == nil {
		return func(context.Context) error { return nil }
	}
	return c.machine.Leave(&c.user, cause)
}

// quit is leave; the function also waits until the call that registers or waits has returned.
func (c *Candidate) quit(cause error) (wait func(ctx context.Context) error) {
	leave, call := c.leave(cause), c.call
	return func(ctx context.Context) error {
		err := leave(ctx)
		if err == nil && call != nil {
			err = retry.Wait(ctx, call)
		}
		return err
	}
}

// begin starts the one call that may register or wait, and sends the machine the event for want.
// end must be called, without the mutex, if there is no error.
func (c *Candidate) begin(ctx context.Context, want core.Want, register bool) (end func(), err error) {
	if ctx == nil {
		return nil, fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	}
	c.lock()
	defer c.unlock()
	// The campaign ends a drained tenure, whose key still exists. It resumes a suspended tenure.
	drained := c.phase() == core.Draining && c.last.leads == 0 && (register || c.suspended())
	switch {
	case c.closed:
		return nil, eldest.ErrClosed
	case c.call != nil:
		return nil, eldest.ErrCampaigning
	case c.won() && !drained:
		return nil, eldest.ErrLeading
	case register && c.stands() && !drained:
		return nil, fmt.Errorf("%w: registered with token %d", eldest.ErrCampaigning, c.life.token)
	case !register && !c.stands():
		return nil, c.notRegistered()
	case ctx.Err() != nil:
		switch {
		case !register:
			_ = c.leave(context.Cause(ctx))
		case drained:
			_ = c.leave(eldest.ErrResigned)
		}
		return nil, context.Cause(ctx)
	}
	if register {
		machine, err := c.session.Take(c.name(), &c.user)
		if err != nil {
			return nil, err // the last candidacy's machine stays: tenures that have ended read from it
		}
		c.machine = machine
	}
	call := make(chan struct{})
	c.call, c.news, c.cause = call, nil, nil
	c.machine.Do(core.Event{Kind: core.Campaign, Want: want})
	return func() {
		c.lock()
		defer c.unlock()
		c.call = nil
		close(call)
		c.turned()
	}, nil
}

// name returns the key as this candidate's client sees it: a client with another namespace has
// another key.
func (c *Candidate) name() loop.Name {
	return loop.Name{Client: loop.Comparable(c.cfg.KV), Key: c.key}
}

// suspended reports whether the candidate's tenure is suspended and its key may lead again.
func (c *Candidate) suspended() bool {
	return c.phase() == core.Draining && c.machine.State().Token > c.machine.State().Doomed
}

// notRegistered returns eldest.ErrNotRegistered, with the cause if there was a candidacy.
func (c *Candidate) notRegistered() error {
	if c.cause == nil {
		return eldest.ErrNotRegistered
	}
	return fmt.Errorf("%w: %w", eldest.ErrNotRegistered, reason(c.cause))
}

// policy returns how a candidate sends the requests of op.
func (c *Candidate) policy(op string) retryrpc.Policy {
	return retryrpc.Policy{Client: c.cfg.KV, Timeout: c.cfg.Timeout, Backoff: c.cfg.Backoff, Failed: c.retrying(op)}
}

// failed wraps an error in an OpError with the operation that it ended. An OpError of the same
// candidate or its session is not wrapped twice.
func (c *Candidate) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &eldest.OpError{
		Op: op, Election: c.cfg.Election, Key: c.key, Lease: int64(c.cfg.Session.ID()), Err: reason(err),
	}
}

// reason returns the cause inside an OpError, and other errors unchanged.
func reason(err error) error {
	if op, ok := err.(*eldest.OpError); ok { //nolint:errorlint // only the outermost one is taken off
		return op.Err
	}
	return err
}
