package election

import (
	"context"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/ask"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/txn"
)

// await waits for one predecessor after another until nobody is older, and wins.
// On error the standing has ended.
//
// Each round rests on one fact, the place as of one revision, and ends with one
// event, the end of the nearest elder's key at a later revision. Whoever else
// comes, goes or leads meanwhile does not wake us (G5).
func (c *Candidate) await(ctx context.Context, s *standing) (*Leadership, error) {
	// Ended by the caller, by Withdraw and Close, and with the standing itself.
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()

	place := s.place
	for !place.First() {
		at := int64(0)
		if len(place.Ahead) > 0 {
			predecessor := place.Ahead[0]
			c.waitingFor(s, predecessor)
			gone, err := c.source.Gone(waiting, watch.Life{Key: predecessor.Key, Token: predecessor.Token})
			if err != nil {
				return nil, c.drop(ctx, s, err)
			}
			place.Ahead = place.Ahead[1:]
			at = gone
		}
		// The predecessor's end is no victory: it may have been a waiter. What
		// the queue looked like at that revision decides.
		next, err := c.ahead(waiting, place, at)
		if err != nil {
			return nil, c.drop(ctx, s, err)
		}
		c.foreign(next)
		place = next
		if place.Unknown() {
			// Only a custom queue answers so; it is not to be hammered.
			if err := retry.Sleep(waiting, c.cfg.Backoff(0)); err != nil {
				return nil, c.drop(ctx, s, err)
			}
		}
	}
	return c.win(ctx, s, place)
}

// waitingFor tells the hooks, unless they were told that it is over.
func (c *Candidate) waitingFor(s *standing, predecessor eldest.Candidate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standing == s {
		call(c, c.cfg.Hooks.Waiting, WaitingEvent{
			Election: c.cfg.Election, Key: c.key, Token: s.token, Predecessor: predecessor,
		})
	}
}

// ahead asks who is older, until it is answered. The revision at is asked for as
// long as a member can answer for it; where none can, the newest state does as
// well, for the queue ahead of us only ever gets shorter.
func (c *Candidate) ahead(ctx context.Context, place txn.Place, at int64) (next txn.Place, err error) {
	err = c.policy().Until(ctx, func(once context.Context) (err error) {
		next, err = c.cfg.Queue.Ahead(once, c.cfg.KV, c.cfg.entry(), place, at)
		if at > 0 && txn.Repeatable(err) {
			at = 0
			next, err = c.cfg.Queue.Ahead(once, c.cfg.KV, c.cfg.entry(), place, at)
		}
		if settles(err) {
			return ask.Final(err)
		}
		return err
	})
	return next, err
}
