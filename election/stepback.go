package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
)

// StepBack gives up a waiting candidate's place and enters the queue anew, at its end,
// with a new and larger token: two requests on a healthy cluster. The campaign that
// waits, if there is one, does not return: it waits on from the new place. Whoever stood
// behind is one place nearer; one of them, the next one, is woken (G5).
//
// It blocks until the new place is confirmed, ctx ends (its cause; where a campaign
// waits the step is completed all the same, else the candidate does not stand any more),
// or the candidacy does (its cause). Other errors: eldest.ErrLeading: it leads, or won at
// this moment, and the win stands; eldest.ErrNotRegistered; eldest.ErrClosed. If the new
// place is refused for good the campaign ends with that error too, out of the queue.
// Between the old place and the new one the candidate does not stand, and Proclaim
// fails. Two calls at the same time are one step.
func (c *Candidate) StepBack(ctx context.Context) (Place, error) {
	place, err := c.stepBack(ctx)
	return place, c.failed("step back", err)
}

// errStepBack ends the context of a call that is to enter anew, and errGiveWay says
// that it does so by itself.
var (
	errStepBack = errors.New("asked to step back")
	errGiveWay  = errors.New("gives way")
)

func (c *Candidate) stepBack(ctx context.Context) (Place, error) {
	if ctx == nil {
		return Place{}, fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	}
	for {
		_ = c.cfg.Session.Holds(0) // reads the clock: what has passed has ended the candidacy
		c.mu.Lock()
		c.reap()
		s, b := c.standing, c.backing
		switch {
		case c.closed:
			c.mu.Unlock()
			return Place{}, eldest.ErrClosed
		case b != nil:
			c.mu.Unlock()
			return b.wait(ctx)
		case s == nil:
			err := c.notRegistered(c.last)
			c.mu.Unlock()
			return Place{}, err
		case s.won():
			c.mu.Unlock()
			return Place{}, eldest.ErrLeading
		case c.call == nil:
			return c.stepBackAlone(ctx, s)
		case s.waiter == nil:
			// A call that stands already and will wait, lead or return in a moment.
			change := c.change()
			c.mu.Unlock()
			if err := retry.Wait(ctx, change); err != nil {
				return Place{}, err
			}
			continue
		}
		b = c.back()
		// From here on the win is excluded: it asks this context, under mu.
		s.waiter(errStepBack)
		c.mu.Unlock()
		return b.wait(ctx)
	}
}

// stepBackAlone steps back where nobody waits for the win. It is called with mu held,
// and gives it up.
func (c *Candidate) stepBackAlone(ctx context.Context, s *standing) (Place, error) {
	_, end := c.calls(&calling{caller: ctx, back: true})
	defer end()
	b := c.back()
	c.mu.Unlock()
	attempt, next, err := c.enterAnew(s)
	var place Place
	if err == nil {
		place = c.placed(next) // from here on it may be in use by Await
		err = c.uninterrupted(attempt, next)
	}
	b.over(c, place, err)
	return b.place, err
}

// backing is a step back that was asked for or is under way.
type backing struct {
	// place and err are valid once done is closed.
	place Place
	err   error
	done  chan struct{}
}

// back starts a step back. The caller holds mu.
func (c *Candidate) back() *backing {
	c.backing = &backing{done: make(chan struct{})}
	return c.backing
}

func (b *backing) wait(ctx context.Context) (Place, error) {
	if err := retry.Wait(ctx, b.done); err != nil {
		return Place{}, err
	}
	return b.place, b.err
}

// over notes how the step came out: with a new place, or an error.
func (b *backing) over(c *Candidate, place Place, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.err = err; err == nil {
		b.place = place
	}
	if c.backing == b {
		c.backing = nil
	}
	close(b.done)
	c.turned()
}

// steps returns the step back that ended the wait for the win, if one did; if none did, the
// call is over, and none can be asked of it any more. The standing may have ended all the
// same.
func (c *Candidate) steps(s *standing, err error) *backing {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.backing != nil:
		return c.backing
	case errors.Is(err, errGiveWay):
		return c.back()
	}
	s.waiter = nil // or somebody would ask, and wait for a step that nobody takes
	return nil
}

// enterAnew ends a standing and enters the queue again, under a new context of the
// present call. On error nothing stands.
func (c *Candidate) enterAnew(s *standing) (attempt context.Context, next *standing, err error) {
	c.mu.Lock()
	call := c.call
	call.detach()
	call.abort(nil)
	attempt = c.attempt(call)
	if call.told != nil {
		call.abort(call.told)
	}
	s.waiter = nil // the end of this standing is not the call's
	c.mu.Unlock()
	if attempt.Err() != nil {
		return attempt, nil, c.drop(attempt, s, nil)
	}
	if !c.finish(s, eldest.ErrSteppedBack) {
		return attempt, nil, context.Cause(s.ctx) // it had ended by itself
	}
	if err = c.depart(attempt, s); err != nil {
		return attempt, nil, err
	}
	next, err = c.register(attempt, c.cfg.Queue.Enter)
	return attempt, next, err
}
