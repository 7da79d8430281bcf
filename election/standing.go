package election

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/txn"
)

// standing is one life of the candidate's key, from registration to departure.
//
// Invariant: ctx ends as soon as the key may be gone: with the session, when the
// watch of the own key says so, or before we delete it ourselves. Its cause never
// changes afterwards. The leading context is made from it and ends no later.
type standing struct {
	token eldest.Token
	// place is where the candidate stands; only the call that registers and waits
	// uses it.
	place txn.Place
	// since is when the place was known, and news when the last predecessor's end was;
	// zero where nobody was waited for. news belongs to the waiting call, as place does.
	since, news time.Time
	ctx         context.Context
	end         context.CancelCauseFunc
	// waiter ends the call that waits for the win; nil before there was one.
	waiter context.CancelCauseFunc
	// led is set once the win is proven.
	led atomic.Bool
	// tenure is what was won; nil before that. The candidate's mu guards it.
	tenure *Leadership
	// unsure says that a registration was sent whose outcome is unknown, and
	// that may therefore arrive late.
	unsure bool
	// removed is closed when the key is certainly gone, or goes with its lease,
	// or, with removal saying why, when etcd refused to remove it.
	removed chan struct{}
	removal error
	// disposed is closed when the claim on the key has been given up.
	disposed chan struct{}
}

func (s *standing) won() bool { return s.led.Load() }

// ended reports whether the standing has ended, tidied up after or not.
func (s *standing) ended() bool { return s.ctx.Err() != nil }

// gone notes how the removal of the key came out.
func (s *standing) gone(err error) {
	s.removal = err
	close(s.removed)
}

// departed waits until the key is gone, or ctx ends.
func (s *standing) departed(ctx context.Context) error {
	if err := retry.Wait(ctx, s.removed); err != nil {
		return err
	}
	return s.removal
}

// stand starts the life of a key that the queue has confirmed.
func (c *Candidate) stand(p txn.Place, unsure bool) *standing {
	s := &standing{
		token: p.Token, place: p, unsure: unsure, since: time.Now(),
		removed: make(chan struct{}), disposed: make(chan struct{}),
	}
	s.ctx, s.end = context.WithCancelCause(c.cfg.Session.Context())
	c.mu.Lock()
	c.turned()
	c.standing, c.last = s, s
	c.registered(s) // before anything can end it
	c.mu.Unlock()
	c.watches.Go(func() { c.watchOwn(s, p.Revision) })
	return s
}

// watchOwn ends the standing when its key is gone, replaced, or no longer bound
// to the session's lease (etcd would then keep it after the session).
func (c *Candidate) watchOwn(s *standing, known int64) {
	_, release, err := c.source.Gone(s.ctx, watch.Life{
		Key: c.key, Token: s.token, Lease: int64(c.cfg.Session.ID()), Known: known,
	})
	defer release()
	switch {
	case s.ctx.Err() != nil:
		c.lost(s, context.Cause(s.ctx))
	case err == nil:
		c.deposed(s, eldest.ErrDeposed)
	case errors.Is(err, watch.ErrOverwritten):
		c.lost(s, fmt.Errorf("%w: %w", eldest.ErrDeposed, err))
	default:
		// etcd refuses to let us watch our own key, for want of permission, say.
		// Without the watch a removal by hand would go unnoticed.
		c.lost(s, fmt.Errorf("%w: the own key cannot be watched: %w", eldest.ErrDeposed, err))
	}
}

// lost ends a standing that did not end itself: the leading context first, then
// whatever is left of the key, in the background.
func (c *Candidate) lost(s *standing, cause error) {
	if c.finish(s, cause) {
		c.tend(s)
	}
}

// deposed ends a standing whose key is certainly gone.
func (c *Candidate) deposed(s *standing, cause error) {
	switch {
	case !c.finish(s, cause):
	case s.unsure:
		c.tend(s)
	default:
		s.gone(nil)
		c.release(s)
	}
}

// finish ends the standing's context, and with it that of the call that waits, and
// makes the candidate idle. It reports whether this call did so: whoever finishes a
// standing disposes of its claim.
func (c *Candidate) finish(s *standing, cause error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standing != s {
		return false
	}
	c.standing = nil
	s.end(c.failed("candidate", cause))
	if s.waiter != nil {
		s.waiter(context.Cause(s.ctx))
	}
	event := EndedEvent{
		Election: c.cfg.Election, Key: c.key, Token: s.token, Led: s.won(), Cause: context.Cause(s.ctx), At: time.Now(),
	}
	if s.tenure != nil {
		event.Retired = s.tenure.retired
	}
	call(c, c.cfg.Hooks.Ended, event)
	c.turned()
	return true
}
