package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
)

// Position is a candidate's position in the queue after Register.
type Position struct {
	// Key is the candidate's key, Token its create revision.
	Key   string
	Token eldest.Token
	// Queue is the number of keys in the election's range, including its own; 0 if it is unknown:
	// the key was adopted, or the queue is long.
	Queue int64
	// Predecessor is the next older candidate's key, which may be deleted by now; empty if it is
	// unknown, or if no older candidate exists: then Await returns at once.
	Predecessor string
}

// Campaign registers the candidate and blocks until it leads. On any error it does not lead and is
// not queued; its key is removed, at the latest with the lease (G8). It ends before the win
//   - with ctx, at once: the error wraps its cause;
//   - by Withdraw or Close: eldest.ErrWithdrawn, eldest.ErrClosed;
//   - when another client removes the key: eldest.ErrDeposed;
//   - with the session: the session's cause;
//   - when etcd refuses permanently (no permission, no space, a closed client): that error.
//
// Requeue and Config.ShouldYield do not end it: it continues from another position. While etcd is
// unavailable it waits. A second call on the same candidate returns eldest.ErrCampaigning, or
// eldest.ErrLeading during a tenure, and changes nothing. A tenure that was drained is resigned
// first, unless a function still runs in it under Lead, which then resigns. A tenure that is
// suspended continues, with the same token, once the key is proven to exist still.
func (c *Candidate) Campaign(ctx context.Context) (*Leadership, error) {
	l, err := c.win(ctx, core.Lead, true)
	return l, c.failed("campaign", err)
}

// Await blocks until a registered candidate leads, also one whose tenure is suspended
// (eldest.ErrSuspended). It ends like Campaign; when ctx ends, the candidacy ends too. Without
// Register it returns eldest.ErrNotRegistered.
func (c *Candidate) Await(ctx context.Context) (*Leadership, error) {
	l, err := c.win(ctx, core.Lead, false)
	return l, c.failed("await", err)
}

// Try leads at once or not at all: if another candidate exists it returns an error that wraps
// eldest.ErrNotElected and is not queued. It sends one request on a healthy cluster. (If foreign
// keys are in the range it registers for a moment to find that out, and leaves again.) It blocks
// only until etcd answers, and fails like Campaign.
func (c *Candidate) Try(ctx context.Context) (*Leadership, error) {
	l, err := c.win(ctx, core.LeadNow, true)
	if errors.Is(err, eldest.ErrNotElected) {
		c.lock()
		wait := c.machine.Leave(nil, nil) // no event: the next call of another goroutine may have begun
		c.unlock()
		if lerr := wait(ctx); lerr != nil {
			err = fmt.Errorf("%w; leaving the queue again: %w", err, lerr)
		}
	}
	return l, c.failed("try", err)
}

// Register enters the queue and returns without waiting for the win. It sends one request on a
// healthy cluster. It blocks and fails like Campaign, and the key remains until Await, Withdraw,
// Close or the end of the session.
func (c *Candidate) Register(ctx context.Context) (Position, error) {
	var place Position
	err := c.during(ctx, core.Queue, true, func() bool {
		place = c.place()
		return c.phase() == core.Waiting
	})
	return place, c.failed("register", err)
}

// win campaigns until the candidate leads, or has led: a tenure may be over or suspended before the
// caller receives it.
func (c *Candidate) win(ctx context.Context, want core.Want, register bool) (l *Leadership, err error) {
	err = c.during(ctx, want, register, func() bool {
		l = c.news
		return l != nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// during campaigns until done, which is called with the mutex held, or until the candidacy has
// ended; then it returns the cause. The end of ctx ends the candidacy.
func (c *Candidate) during(ctx context.Context, want core.Want, register bool, done func() bool) error {
	end, err := c.begin(ctx, want, register)
	if err != nil {
		return err
	}
	defer end()
	ended := c.machine.Await(ctx, func() bool { return c.cause != nil || done() })
	c.lock()
	defer c.unlock()
	if ended != nil && c.stands() {
		c.machine.Do(core.Event{Kind: core.Leave, Err: ended})
	}
	return c.cause
}
