package election

import (
	"context"
	"slices"
	"time"

	"github.com/eldest-io/eldest/internal/ask"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/txn"
)

// await waits, from one place after another if it steps back, until it wins. On error
// the standing has ended.
func (c *Candidate) await(ctx context.Context, s *standing) (*Leadership, error) {
	for steps := (steps{}); ; {
		l, err := c.first(ctx, s, &steps)
		if err == nil {
			return l, nil
		}
		b := c.steps(s, err)
		if b == nil {
			return nil, c.drop(ctx, s, err)
		}
		steps.note(err, c.cfg.Backoff)
		var place Place
		if ctx, s, err = c.enterAnew(s); err == nil {
			place = c.placed(s)
		}
		b.over(c, place, err)
		if err != nil {
			return nil, err
		}
	}
}

// first waits for one predecessor after another until nobody is older, and wins. On
// error the standing is as it was.
//
// Each round rests on one fact, the place as of one revision, and ends with one
// event, the end of the nearest elder's key at a later revision. Whoever else
// comes, goes or leads meanwhile does not wake us (G5).
func (c *Candidate) first(ctx context.Context, s *standing, steps *steps) (*Leadership, error) {
	if !c.waits(s) {
		return nil, context.Cause(s.ctx)
	}
	for !s.place.First() {
		if err := c.nearer(ctx, s); err != nil {
			return nil, err
		}
		if s.place.Unknown() {
			// Only a custom queue answers so; it is not to be hammered.
			if err := retry.Sleep(ctx, c.cfg.Backoff(0)); err != nil {
				return nil, err
			}
		}
	}
	if c.cfg.GiveWay != nil {
		if err := c.givesWay(ctx, s, steps); err != nil {
			return nil, err
		}
	}
	return c.win(ctx, s)
}

// waits has the present call end with the standing, and reports whether that has not
// ended already.
func (c *Candidate) waits(s *standing) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.waiter = c.call.abort
	c.turned()
	return !s.ended()
}

// nearer waits until the predecessor is gone, if there is one, and finds the place
// after that. The predecessor's end is no victory: it may have been a waiter. What
// the queue looked like at that revision decides.
func (c *Candidate) nearer(ctx context.Context, s *standing) error {
	at := int64(0)
	if len(s.place.Ahead) > 0 {
		c.waitingFor(s)
		if !s.place.Complete {
			// Who is older is asked anew after this one, so the others need not be kept
			// by all who wait in a long queue.
			s.place.Ahead = slices.Clone(s.place.Ahead[:1])
		}
		predecessor := &s.place.Ahead[0]
		gone, release, err := c.source.Gone(ctx, watch.Life{Key: predecessor.Key, Token: predecessor.Token})
		defer release() // after the next request, not before it
		if err != nil {
			return err
		}
		s.place.Ahead, s.news = s.place.Ahead[1:], time.Now()
		at = gone
	}
	return c.look(ctx, s, at)
}

// look finds the place anew.
func (c *Candidate) look(ctx context.Context, s *standing, at int64) error {
	place, err := c.ahead(ctx, s.place, at)
	if err != nil {
		return err
	}
	c.foreign(place)
	s.place = place
	return nil
}

// waitingFor tells the hooks, unless they were told that it is over.
func (c *Candidate) waitingFor(s *standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standing == s {
		call(c, c.cfg.Hooks.Waiting, WaitingEvent{
			Election: c.cfg.Election, Key: c.key, Token: s.token, Predecessor: s.place.Ahead[0], At: time.Now(),
		})
	}
}

// behind is how often a member that has not reached a revision yet is taken for a
// follower that is a moment behind, and the next one asked.
const behind = 2

// ahead asks who is older, until it is answered. The revision at is asked for as
// long as a member can answer for it; where none can, the newest state does as
// well, for the queue ahead of us only ever gets shorter. It is asked of a quorum,
// which takes longer than a second question to a single member.
func (c *Candidate) ahead(ctx context.Context, place txn.Place, at int64) (next txn.Place, err error) {
	future := 0
	err = c.policy("find predecessor").Until(ctx, func(once context.Context) (err error) {
		next, err = c.cfg.Queue.Ahead(once, c.cfg.KV, c.cfg.entry(), place, at)
		for at > 0 && txn.Repeatable(err) {
			if future++; future > behind || !rpcerr.Future(err) {
				at = 0
			}
			next, err = c.cfg.Queue.Ahead(once, c.cfg.KV, c.cfg.entry(), place, at)
		}
		if settles(err) {
			return ask.Final(err)
		}
		return err
	})
	return next, err
}
