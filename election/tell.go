package election

import (
	"context"
	"errors"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/loop"
	"github.com/eldest-io/eldest/internal/serial"
	"github.com/eldest-io/eldest/keys"
)

// life is one existence of the candidate's key, from its registration to its deletion.
type life struct {
	token eldest.Token
	queue int64 // see Position.Queue
	// since is when the position was received. news is the time from then until the deletion of the
	// last predecessor's key was received; 0 if there was none.
	since time.Time
	news  time.Duration
	// elder is the predecessor for which the Waiting hook was called last.
	elder eldest.Token
}

// tell receives each step of the machine. In the order of core.Effects it ends contexts and calls
// the hooks. It is called with the mutex held.
func (c *Candidate) tell(s loop.Step) {
	now := time.Now()
	c.ended(s, now)
	if s.Effects.Registered > 0 {
		c.begun(s, now)
	}
	if p := s.Place; p != nil {
		if s.After.Exists() && (!p.Unknown() || s.After.Want == core.Queue) {
			c.stepped(c.place(), nil)
		}
		for _, key := range p.Foreign {
			serial.Call(&c.hooks, c.cfg.Hooks.Foreign, ForeignEvent{Election: c.cfg.Election, Key: key})
		}
	}
	c.waits(s.After, now)
	if s.Effects.Won > 0 {
		c.wins(s.After, now)
	}
	if !s.After.Exists() && s.After.Want == core.Nothing {
		if s.Before.Exists() || s.Before.Want != core.Nothing {
			c.cause = s.After.Cause
		}
		c.stepped(Position{}, c.cause)
	}
	if s.Before.Phase != s.After.Phase || s.Before.Token != s.After.Token || s.Before.Doomed != s.After.Doomed {
		c.turned()
	}
}

// ended ends the contexts of a candidacy or a tenure that is over, and calls the hook. A drained
// tenure keeps its key: the Ended hook is called later.
func (c *Candidate) ended(s loop.Step, now time.Time) {
	l := c.last
	led := l != nil && l.token == s.Before.Token // a suspended tenure may have been proven again
	switch {
	case s.Effects.Drained:
		l.end(c.failed("candidate", s.Effects.Cause))
		if s.After.Token > s.After.Doomed {
			serial.Call(&c.hooks, c.cfg.Hooks.Suspended, SuspendedEvent{Election: c.cfg.Election, Key: c.key, Token: l.token, Cause: context.Cause(l.ctx), At: now})
		}
	case s.Effects.Ended > 0:
		event := EndedEvent{
			Election: c.cfg.Election, Key: c.key, Token: s.Effects.Ended, Led: led, Cause: c.failed("candidate", s.Effects.Cause), At: now,
		}
		if led {
			l.end(event.Cause)
			event.Drained = l.drained
		}
		if c.cfg.Session.Context().Err() != nil {
			event.Cause = s.Effects.Cause
		}
		serial.Call(&c.hooks, c.cfg.Hooks.Ended, event)
		if s.After.Want != core.Nothing && errors.Is(s.Effects.Cause, eldest.ErrRequeued) && c.step == nil {
			c.step = &step{done: make(chan struct{})}
		}
	}
}

// begun begins a life of the key, and calls the hook.
func (c *Candidate) begun(s loop.Step, now time.Time) {
	p := s.Place
	c.life = life{token: p.Token, since: now, queue: p.Queue}
	serial.Call(&c.hooks, c.cfg.Hooks.Registered, RegisteredEvent{
		Candidate: c, Election: c.cfg.Election, Key: c.key, Token: p.Token, Queue: p.Queue,
		Predecessor: c.place().Predecessor, Adopted: p.Adopted, At: now,
	})
}

// place returns the candidate's position.
func (c *Candidate) place() Position {
	p := Position{Key: c.key, Token: c.life.token, Queue: c.life.queue}
	if elders := c.machine.State().Position.Elders; len(elders) > 0 {
		p.Predecessor = elders[0].Key
	}
	return p
}

// waits calls the hook for each new predecessor.
func (c *Candidate) waits(s *core.Candidate, now time.Time) {
	switch {
	case s.Phase == core.Waiting && len(s.Position.Elders) > 0:
		elder := s.Position.Elders[0]
		if elder.Token == c.life.elder || s.Want == core.Queue {
			return
		}
		c.life.elder = elder.Token
		serial.Call(&c.hooks, c.cfg.Hooks.Waiting, WaitingEvent{
			Election: c.cfg.Election, Key: c.key, Token: s.Token, Predecessor: c.candidate(elder), At: now,
		})
	case s.Phase == core.Proving && c.life.elder > 0:
		c.life.elder, c.life.news = 0, now.Sub(c.life.since)
	}
}

// candidate converts an elder to the type of the API.
func (c *Candidate) candidate(e core.Elder) eldest.Candidate {
	lease, _ := keys.Parse(c.cfg.Election, e.Key)
	return eldest.Candidate{Key: e.Key, Token: e.Token, Lease: lease}
}

// wins makes the candidate the leader: at the position of the machine its key existed, and no older
// one (G1).
func (c *Candidate) wins(s *core.Candidate, now time.Time) {
	resumed := c.last != nil && c.last.token == s.Token
	l := &Leadership{c: c, token: s.Token}
	l.ctx, l.end = context.WithCancelCause(c.cfg.Session.Context())
	c.last, c.news = l, l
	won := WonEvent{
		Election: c.cfg.Election, Key: c.key, Token: s.Token, Revision: s.Position.Revision, Waited: now.Sub(c.life.since), Resumed: resumed, At: now,
	}
	if c.life.news > 0 && !resumed {
		won.Proof = won.Waited - c.life.news
	}
	serial.Call(&c.hooks, c.cfg.Hooks.Won, won)
}
