package sandbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
)

// network changes the settings of a participant's network. Their effect is immediate: the gate is in
// this process.
func (t *task) network(change func(*settings)) error {
	c := t.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Life == feed.Left {
		return c.refusal()
	}
	c.gate.change(change)
	c.shown()
	return nil
}

func (t *task) cut(context.Context) error {
	way := t.a.Way
	if way == "" {
		way = bothWays
	}
	return t.network(func(s *settings) { s.cut = way })
}

func (t *task) delay(context.Context) error {
	return t.network(func(s *settings) { s.delay = time.Duration(t.a.MS * float64(time.Millisecond)) })
}

func (t *task) loseReply(context.Context) error {
	return t.network(func(s *settings) { s.loseReply = true })
}

func (t *task) heal(context.Context) error {
	return t.network(func(s *settings) { s.cut, s.delay, s.loseReply = "", 0, false })
}

func (t *task) hold(context.Context) error {
	return t.network(func(s *settings) { s.hold = true })
}

func (t *task) breakpoint(context.Context) error {
	return t.network(func(s *settings) { s.breakpoints = slices.Clone(t.a.Breakpoints) })
}

func (t *task) unhold(context.Context) error {
	return t.network(func(s *settings) { s.hold, s.breakpoints = false, nil })
}

func (t *task) release(ctx context.Context) error { return t.decide(ctx, true) }
func (t *task) drop(ctx context.Context) error    { return t.decide(ctx, false) }

// matchTime is how long an action waits for a message that it could be about.
const matchTime = 5 * time.Second

// decide has a held message passed on or lost, and blocks until that was reported. The action is
// recorded so that it can be played again, when messages have other IDs.
func (t *task) decide(ctx context.Context, pass bool) error {
	var h *held
	switch {
	case t.a.Message != 0:
		var c *candidate
		if h, c = t.in.heldMessage(t.a.Message, pass); h == nil {
			return feed.Refused("message %d is not held: it was released or dropped, or its call has ended", t.a.Message)
		}
		t.a.On, t.a.Match, t.a.Message = c.name, h.kind, 0
	default:
		fits := func(m message) bool { return t.a.Match == "" || t.a.Match == m.kind }
		waiting, cancel := context.WithTimeoutCause(ctx, matchTime, errNoneHeld)
		defer cancel()
		var dead time.Time // since when its participant is
		err := inject.Until(waiting, "a message is held", func(context.Context) (bool, error) {
			h = t.c.gate.decide(fits, pass)
			if h != nil || !t.c.over() {
				dead = time.Time{}
				return h != nil, nil
			}
			if dead.IsZero() {
				dead = time.Now()
			}
			return time.Since(dead) > lateTime, nil
		})
		switch {
		case err == nil && h == nil:
			t.c.mu.Lock()
			defer t.c.mu.Unlock()
			return t.c.refusal()
		case errors.Is(err, errNoneHeld) && t.a.Match == "":
			return feed.Refused("no message of %s is held", t.c.name)
		case errors.Is(err, errNoneHeld):
			return feed.Refused("no message %q of %s is held", t.a.Match, t.c.name)
		case err != nil:
			return err
		}
	}
	select {
	case <-h.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lateTime is how long the messages of a participant that has ended may be late: those that end its
// calls. A participant that gets another rule is dead for a moment as well.
const lateTime = 500 * time.Millisecond

// over reports whether a participant is dead or has left.
func (c *candidate) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Life == feed.Dead || c.state.Life == feed.Left
}

var errNoneHeld = errors.New("none is held")

// heldMessage decides about a held message, and returns it with its participant; nil if it is not
// held.
func (s *Sandbox) heldMessage(id int64, pass bool) (*held, *candidate) {
	for _, c := range s.allCandidates() {
		if h := c.gate.decide(func(m message) bool { return m.id == id }, pass); h != nil {
			return h, c
		}
	}
	return nil, nil
}
