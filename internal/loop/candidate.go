package loop

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/txn"
)

// User is the owner of a candidate: how the candidate is queued, and which functions are called.
// The session's mutex guards Entry; the other fields do not change.
type User struct {
	KV    clientv3.KV
	Queue txn.Ordering
	// Entry carries the value of the next registration.
	Entry  txn.Entry
	Source *watch.Source
	// Policy returns the policy for the request that op names.
	Policy func(op string) retryrpc.Policy
	// Survey, if not nil, reports whether the candidate, which is the oldest one and has the token,
	// must requeue instead of leading. If wait is positive, it is called again after wait. It is
	// called without the mutex, and may block until ctx ends.
	Survey func(ctx context.Context, token eldest.Token) (yield bool, wait time.Duration, revision int64, err error)
	// Shared is true if other sessions of the lease, which this process may not know, may have
	// candidates with the same key. See twins.go.
	Shared bool
	// Evicted, if not nil, is called for an older candidate that this one has evicted. It must not
	// block.
	Evicted func(Silence)
	// Tell receives each step. It is called with the mutex, and must not block.
	Tell func(Step)
}

// Step is a change of a candidate.
type Step struct {
	Before, After *core.Candidate
	Effects       core.Effects
	// Place is the answer that showed the place in the queue; nil: the step comes from none.
	Place *txn.Position
}

// Candidate runs the machine of one key of a session. It exists for as long as the key exists, or
// may exist. Made by Session.Take. All methods need the session's mutex, unless they say otherwise.
type Candidate struct {
	session *Session
	name    Name
	user    *User

	state    core.Candidate
	asked    int // counts requests: the answer to one that was replaced is dropped
	cancel   context.CancelFunc
	attempts *retryrpc.Attempts // of the request under way or paused
	delay    time.Duration      // before the next attempt, after one that failed
	refusals int                // how often a removal was refused
	refusal  error              // the last one
	pause    *time.Timer
	own      watched
	elder    watched
	changed  chan struct{} // closed at the next step; nil while no goroutine waits
	shared   *shared       // nil unless the user's key is
	heart    *heart        // nil: the session has no heartbeats
	// stretched is the number of the stretch of the heart in which it has won.
	stretched uint64
	ear       *ear // follows the heartbeats of the older candidate; nil if there is none
}

// State returns the state of the machine.
func (c *Candidate) State() *core.Candidate { return &c.state }

// Of reports whether the candidate belongs to this user.
func (c *Candidate) Of(u *User) bool { return c != nil && c.user == u }

// Busy reports whether its user wants a key or has one: then no other user can take the candidate.
func (c *Candidate) Busy() bool { return c.state.Want != core.Nothing || c.state.Exists() }

// Do gives the machine an event. It does not block.
func (c *Candidate) Do(e core.Event) { c.take(e, nil) }

// Watched sets whether the user must be notified when the key is deleted, once the candidate leads.
func (c *Candidate) Watched(on bool) {
	c.state.Unwatched = !on
	c.watch(c.state.Watches())
}

// take handles an event and starts its effects, in the order that core.Effects defines. place is
// the answer that showed the place in the queue, if the event comes from one.
func (c *Candidate) take(e core.Event, place *txn.Position) {
	if c.session.ended {
		return
	}
	if c.user.Shared {
		e = c.allowedShared(e, place)
	} else {
		e = c.allowed(e)
	}
	if e.Kind == none {
		return
	}
	before := c.state
	next, effects := core.Step(before, e)
	c.state = next
	c.remember(&before, e, effects)
	c.user.Tell(Step{Before: &before, After: &next, Effects: effects, Place: place})
	if next.Asked.Request == core.None || effects.Send.Request != core.None {
		c.forget()
	}
	switch again := before.Paused && effects.Send.Request == before.Asked.Request; {
	case next.Asked.Request == core.None:
		c.attempts = nil
	case effects.Pause:
		c.rest()
	case effects.Send.Request != core.None:
		if !again {
			c.attempts = new(retryrpc.Attempts)
		}
		c.send(effects.Send)
	}
	if e.Kind == core.ElderDeleted {
		c.elder.token = reported
	}
	c.watch(next.Watches())
	c.beat(&before, &next)
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
	if next.Phase == core.Idle && !next.Owed && c.session.candidates[c.name] == c {
		delete(c.session.candidates, c.name)
	}
}

// beat makes the session send heartbeats while this candidate leads, checks whether it leads, or
// keeps the key with which it led.
func (c *Candidate) beat(before, after *core.Candidate) {
	needs := func(s *core.Candidate) bool { return core.Proving <= s.Phase && s.Phase <= core.Draining }
	switch {
	case c.heart == nil || needs(before) == needs(after):
	case needs(after):
		c.heart.want(+1)
	default:
		c.heart.want(-1)
	}
}

// allowed changes events about a key that this candidate must not hold: one that another candidate
// of the lease holds, or that is doomed.
func (c *Candidate) allowed(e core.Event) core.Event {
	lease := c.session.past
	switch e.Kind {
	case core.Registered:
		if lease.Held(e.Token, c) {
			return core.Event{Kind: core.Refused, Err: errHeld}
		}
		c.doomed(e.Token)
	case core.Looked:
		if e.Token > 0 && e.Token != c.state.Token && lease.Held(e.Token, c) {
			e.Token = 0
		}
	}
	return e
}

// doomed sets Doomed of the machine if the token is doomed in the lease.
func (c *Candidate) doomed(token eldest.Token) {
	if c.session.past.Doomed(token) {
		c.state.Doomed = max(c.state.Doomed, token)
	}
}

// remember records in the lease what outlives this candidate and its session.
func (c *Candidate) remember(before *core.Candidate, e core.Event, effects core.Effects) {
	lease, after := c.session.past, &c.state
	if effects.Ended > 0 && !c.user.Shared {
		lease.Release(effects.Ended)
	}
	if effects.Registered > 0 && !c.user.Shared {
		lease.Hold(effects.Registered, c)
	}
	if after.Doomed > before.Doomed {
		lease.Doom(after.Doomed)
	}
	if gone := before.Token; gone > 0 && after.Token != gone && e.Kind != core.SessionEnded {
		lease.Spare(gone)
	}
	if after.Owed && !before.Owed && !c.user.Shared {
		lease.Owe(c.name.Key)
	}
}

// rest gives the machine Due after a pause.
func (c *Candidate) rest() {
	serial := c.asked
	c.pause = time.AfterFunc(c.delay, func() {
		c.session.mu.Lock()
		defer c.session.mu.Unlock()
		if c.asked == serial {
			c.Do(core.Event{Kind: core.Due})
		}
	})
}

// forget drops the answer of a request under way, and a pause.
func (c *Candidate) forget() {
	c.asked++
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
	if c.pause != nil {
		c.pause.Stop()
		c.pause = nil
	}
}

// Await blocks until cond holds for the machine, or ctx ends; then it returns ctx's cause. It is
// called without the mutex, and calls cond with the mutex.
func (c *Candidate) Await(ctx context.Context, cond func() bool) error {
	for {
		c.session.mu.Lock()
		if cond() {
			c.session.mu.Unlock()
			return nil
		}
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.session.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Leave starts the deletion of the key, as core.Leave does, if the candidate belongs to this user.
// The returned function blocks until no key up to the present one exists or is being deleted, or
// the session has ended; then it returns nil. It also returns if etcd refuses from now on to delete
// the key, with that error, and when ctx ends, with its cause: the key is then deleted in the
// background. It is called without the mutex.
func (c *Candidate) Leave(user *User, cause error) (wait func(ctx context.Context) error) {
	token, refusals := c.state.Token, c.refusals
	if c.user == user {
		c.Do(core.Event{Kind: core.Leave, Err: cause})
	}
	return func(ctx context.Context) error {
		var refusal error
		err := c.Await(ctx, func() bool {
			if c.state.Phase == core.Leaving && (token == 0 || c.state.Token <= token) || c.state.Phase == core.Entering && c.state.Want == core.Nothing {
				if c.refusals > refusals {
					refusal = c.refusal
				}
				return refusal != nil
			}
			return true
		})
		if err == nil {
			err = refusal
		}
		return err
	}
}
