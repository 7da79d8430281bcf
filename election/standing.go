package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/claims"
	"github.com/eldest-io/eldest/internal/rpcerr"
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
	// claim holds the key; given up once, by disposing, which closes disposed.
	claim     *claims.Claim
	disposing sync.Once
	disposed  chan struct{}
	// present ends, by gone, when the key is certainly gone, or goes with its lease.
	present context.Context
	gone    context.CancelFunc
	// departing has room for the one call that removes the key and waits for that.
	departing chan struct{}
}

func (s *standing) won() bool { return s.led.Load() }

// ended reports whether the standing has ended, tidied up after or not.
func (s *standing) ended() bool { return s.ctx.Err() != nil }

// stand starts the life of a key that the queue has confirmed and claim holds.
func (c *Candidate) stand(claim *claims.Claim, p txn.Place, unsure bool) *standing {
	s := &standing{
		token: p.Token, place: p, unsure: unsure, since: time.Now(), claim: claim,
		disposed: make(chan struct{}), departing: make(chan struct{}, 1),
	}
	s.present, s.gone = context.WithCancel(context.Background())
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
	case errors.Is(err, eldest.ErrClosed), rpcerr.Closed(c.cfg.KV), rpcerr.Closed(c.cfg.Watcher):
		// Its key may be there still; without the client nothing can be known of it.
		c.lost(s, fmt.Errorf("%w: the etcd client", eldest.ErrClosed))
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
		c.clean(s)
	}
}

// deposed ends a standing whose key is certainly gone.
func (c *Candidate) deposed(s *standing, cause error) {
	if c.finish(s, cause) {
		s.claim.Gone(s.token)
		c.left(s)
	}
}

// finish ends the standing's context, and with it that of the call that waits, and
// makes the candidate idle. It reports whether this call did so: whoever finishes a
// standing disposes of its claim. From here on no candidate of the session adopts the key:
// what was given up does not come back (G2).
func (c *Candidate) finish(s *standing, cause error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standing != s {
		return false
	}
	c.standing = nil
	_ = s.claim.Doom(s.token) // of a session that has ended, the keys are left to Resume
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
