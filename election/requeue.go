package election

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/internal/retry"
)

// Requeue gives up a waiting candidate's position and registers it again at the end of the queue,
// with a new and larger token. It sends two requests on a healthy cluster. A campaign that waits
// does not return: it continues to wait from the new position. The candidates behind the old
// position move up by one; the first of them is woken (G5).
//
// It blocks until the new position is confirmed, ctx ends (its cause; if a campaign waits the
// requeue is completed nevertheless, otherwise the candidate leaves the queue), or the candidacy
// ends (its cause). Other errors: eldest.ErrLeading: it leads, or won at this moment, and keeps the
// leadership; eldest.ErrNotRegistered; eldest.ErrClosed. If the new registration is refused
// permanently the campaign ends with that error too, and the candidate is not queued. Between the
// old position and the new one the candidate is not queued, and Proclaim fails. Two concurrent
// calls are one requeue.
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
	case c.step != s: // it is over, perhaps at the moment at which ctx ended
		return s.place, s.err
	case first && c.call == nil:
		c.machine.Do(core.Event{Kind: core.Leave, Err: err})
	}
	return Position{}, err
}

// step is a requeue in progress: the candidate is not queued meanwhile.
type step struct {
	// place and err are valid once done is closed.
	place Position
	err   error
	done  chan struct{}
}

// stepped ends the current requeue, if there is one, with a new position or an error. The caller
// holds the mutex.
func (c *Candidate) stepped(place Position, err error) {
	if s := c.step; s != nil {
		s.place, s.err = place, err
		c.step = nil
		close(s.done)
	}
}
