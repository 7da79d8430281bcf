package election

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/retry"
)

// Requeue gives up a waiting candidate's place and enters the queue anew, at its end,
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
func (c *Candidate) Requeue(ctx context.Context) (Position, error) {
	place, err := c.requeue(ctx)
	return place, c.failed("requeue", err)
}

func (c *Candidate) requeue(ctx context.Context) (Position, error) {
	if ctx == nil {
		return Position{}, fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	}
	c.lock()
	first := c.step == nil
	switch {
	case c.closed:
		c.unlock()
		return Position{}, eldest.ErrClosed
	case c.won():
		c.unlock()
		return Position{}, eldest.ErrLeading
	case first && !c.registered():
		defer c.unlock()
		return Position{}, c.notRegistered()
	case first:
		c.machine.Do(core.Event{Kind: core.Requeue})
	}
	s := c.step
	c.unlock()
	err := retry.Wait(ctx, s.done)
	c.lock()
	defer c.unlock()
	switch {
	case err == nil:
		return s.place, s.err
	case first && c.step == s && c.call == nil:
		c.machine.Do(core.Event{Kind: core.Leave, Err: err})
	}
	return Position{}, err
}

// step is the way from one place in the queue to another: nobody stands meanwhile.
type step struct {
	// place and err are valid once done is closed.
	place Position
	err   error
	done  chan struct{}
}

// stepped notes how a step came out, if the candidate is on one: with a new place, or an error.
// The caller holds the mutex.
func (c *Candidate) stepped(place Position, err error) {
	if s := c.step; s != nil {
		s.place, s.err = place, err
		c.step = nil
		close(s.done)
	}
}
