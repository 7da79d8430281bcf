package election

import (
	"context"
	"errors"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/loop"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// life is one life of the candidate's key, from registration to departure.
type life struct {
	token eldest.Token
	place Place
	// since is when the place was known, and news when the end of the last predecessor was;
	// zero where nobody was waited for.
	since, news time.Time
	// elder is whom the hook was told last that the candidate waits for.
	elder core.Elder
}

// tell receives each step of the machine. In the order of core.Effects it ends contexts
// and tells the hooks. It is called with the mutex.
func (c *Candidate) tell(s loop.Step) {
	now := time.Now()
	c.ended(s, now)
	if s.Effects.Registered > 0 {
		c.begun(s, now)
	}
	if p := s.Place; p != nil {
		if s.After.Exists() && (!p.Unknown() || s.After.Want == core.Queue) {
			c.placed(p)
			c.stepped(c.life.place, nil)
		}
		for _, key := range p.Foreign {
			call(c, c.cfg.Hooks.Foreign, ForeignEvent{Election: c.cfg.Election, Key: key})
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
		c.stepped(Place{}, c.cause)
	}
	if s.Before.Phase != s.After.Phase || s.Before.Token != s.After.Token {
		c.turned()
	}
}

// ended ends the contexts of a candidacy or a tenure that is over, and tells the hook. A
// tenure that is retired keeps its key: its hook comes later.
func (c *Candidate) ended(s loop.Step, now time.Time) {
	l := c.last
	led := s.Before.Phase == core.Leading || s.Before.Phase == core.Draining
	switch {
	case s.Effects.Drained:
		l.retired = now
		l.end(c.failed("candidate", s.Effects.Cause))
	case s.Effects.Ended > 0:
		event := EndedEvent{
			Election: c.cfg.Election, Key: c.key, Token: s.Effects.Ended, Led: led, Cause: c.failed("candidate", s.Effects.Cause), At: now,
		}
		if led {
			l.end(event.Cause)
			event.Retired = l.retired
		}
		if c.cfg.Session.Context().Err() != nil {
			event.Cause = s.Effects.Cause
		}
		call(c, c.cfg.Hooks.Ended, event)
		if s.After.Want != core.Nothing && errors.Is(s.Effects.Cause, eldest.ErrSteppedBack) && c.step == nil {
			c.step = &step{done: make(chan struct{})}
		}
	}
}

// begun begins a life of the key, and notifies the hook.
func (c *Candidate) begun(s loop.Step, now time.Time) {
	p := s.Place
	c.life = life{token: p.Token, since: now, place: Place{Key: c.key, Token: p.Token, Queue: p.Queue}}
	c.placed(p)
	call(c, c.cfg.Hooks.Registered, RegisteredEvent{
		Candidate: c, Election: c.cfg.Election, Key: c.key, Token: p.Token, Queue: p.Queue,
		Predecessor: c.life.place.Predecessor, Adopted: p.Adopted, At: now,
	})
}

// placed notes who is next before the candidate.
func (c *Candidate) placed(p *txn.Place) {
	if c.life.place.Predecessor = ""; len(p.Ahead) > 0 {
		c.life.place.Predecessor = p.Ahead[0].Key
	}
}

// waits tells the hook of each new predecessor.
func (c *Candidate) waits(s *core.Candidate, now time.Time) {
	switch {
	case s.Phase == core.Waiting && len(s.Position.Elders) > 0:
		elder := s.Position.Elders[0]
		if elder == c.life.elder || s.Want == core.Queue {
			return
		}
		c.life.elder = elder
		lease, _ := keys.Parse(c.cfg.Election, elder.Key)
		call(c, c.cfg.Hooks.Waiting, WaitingEvent{
			Election: c.cfg.Election, Key: c.key, Token: s.Token,
			Predecessor: eldest.Candidate{Key: elder.Key, Token: elder.Token, Lease: lease}, At: now,
		})
	case s.Phase == core.Proving && c.life.elder.Token > 0:
		c.life.elder, c.life.news = core.Elder{}, now
	}
}

// wins makes the candidate the leader: at the position of the machine its key was there, and
// no older one (G1).
func (c *Candidate) wins(s *core.Candidate, now time.Time) {
	l := &Leadership{c: c, token: s.Token}
	l.ctx, l.end = context.WithCancelCause(c.cfg.Session.Context())
	c.last = l
	won := WonEvent{
		Election: c.cfg.Election, Key: c.key, Token: s.Token, Revision: s.Position.Revision, Waited: now.Sub(c.life.since), At: now,
	}
	if !c.life.news.IsZero() {
		won.Proof = now.Sub(c.life.news)
	}
	call(c, c.cfg.Hooks.Won, won)
}
