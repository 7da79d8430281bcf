package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
)

// Position is where a candidate stands after Register.
type Position struct {
	// Key is the candidate's key, Token its create revision.
	Key   string
	Token eldest.Token
	// Queue is the number of keys in the election's range, the own one included;
	// 0 where that was not learnt: the key was adopted, or the queue is long.
	Queue int64
	// Predecessor is the next older candidate's key, which may have left meanwhile; empty:
	// nobody is older, and Await returns at once, or who is was not learnt.
	Predecessor string
}

// Campaign stands for election and blocks until the candidate leads. On any error
// it does not lead and does not stand any more; its key is removed, at the latest
// with the lease (G8). It ends before the win
//   - with ctx, at once: the error wraps its cause;
//   - by Withdraw or Close: eldest.ErrWithdrawn, eldest.ErrClosed;
//   - when somebody removes the key: eldest.ErrDeposed;
//   - with the session: the session's cause;
//   - when etcd refuses for good (no permission, no space, a closed client): that.
//
// Requeue and Config.ShouldYield do not end it: it goes on from another place. While etcd is
// away it waits. A second call on the same candidate returns eldest.ErrCampaigning, or
// eldest.ErrLeading during a tenure, and changes nothing. A tenure that was drained is
// resigned first, unless a function still runs in it under Lead, which then resigns. One that
// is suspended goes on, with the same token, once its key is proven to be there still.
func (c *Candidate) Campaign(ctx context.Context) (*Leadership, error) {
	l, err := c.win(ctx, core.Lead, true)
	return l, c.failed("campaign", err)
}

// Await blocks until a registered candidate leads, one whose tenure is suspended
// (eldest.ErrSuspended) included. It ends like Campaign; when
// ctx ends, so does the candidacy. Without Register: eldest.ErrNotRegistered.
func (c *Candidate) Await(ctx context.Context) (*Leadership, error) {
	l, err := c.win(ctx, core.Lead, false)
	return l, c.failed("await", err)
}

// Try leads at once or not at all: if any candidate stands it returns an error
// that wraps eldest.ErrNotElected and has not queued. One request on a healthy
// cluster. (Where foreign keys are in the range it has to stand for a moment to find
// out, and leaves again.) It blocks only for etcd's answers, and fails like Campaign.
func (c *Candidate) Try(ctx context.Context) (*Leadership, error) {
	l, err := c.win(ctx, core.LeadNow, true)
	if errors.Is(err, eldest.ErrNotElected) {
		c.lock()
		wait := c.leave(err)
		c.unlock()
		if lerr := wait(ctx); lerr != nil {
			err = fmt.Errorf("%w; leaving the queue again: %w", err, lerr)
		}
	}
	return l, c.failed("try", err)
}

// Register enters the queue and returns without waiting for the win: one request
// on a healthy cluster. It blocks and fails like Campaign, and the key stays until
// Await, Withdraw, Close or the end of the session.
func (c *Candidate) Register(ctx context.Context) (Position, error) {
	var place Position
	err := c.during(ctx, core.Queue, true, func() bool {
		place = c.place()
		return c.phase() == core.Waiting
	})
	return place, c.failed("register", err)
}

// win competes until the candidate leads, or has led: a tenure may be over, or suspended, before its
// caller is told of it.
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

// during competes until done, which is asked with the mutex, or the candidacy has ended:
// then it returns the cause. The end of ctx ends the candidacy.
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
