package election

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/ask"
	"github.com/eldest-io/eldest/internal/claims"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/txn"
)

// Place is where a candidate stands after Register.
type Place struct {
	// Key is the candidate's key, Token its create revision.
	Key   string
	Token eldest.Token
	// Queue is the number of keys in the election's range, the own one included;
	// 0 when the key was adopted.
	Queue int64
	// Predecessor is the next older candidate's key; empty: nobody is older, and
	// Await returns at once.
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
// StepBack and Config.GiveWay do not end it: it goes on from another place. While etcd is
// away it waits. A second call on the same candidate returns eldest.ErrCampaigning, or
// eldest.ErrLeading during a tenure, and changes nothing. A tenure that was retired is
// resigned first, unless a function still runs in it under Lead, which then resigns.
func (c *Candidate) Campaign(ctx context.Context) (*Leadership, error) {
	l, err := c.during(ctx, true, func(ctx context.Context) (*Leadership, error) {
		s, err := c.register(ctx, c.cfg.Queue.Enter)
		if err != nil {
			return nil, err
		}
		return c.await(ctx, s)
	})
	return l, c.failed("campaign", err)
}

// Register enters the queue and returns without waiting for the win: one request
// on a healthy cluster. It blocks and fails like Campaign, and the key stays until
// Await, Withdraw, Close or the end of the session.
func (c *Candidate) Register(ctx context.Context) (Place, error) {
	var place Place
	_, err := c.during(ctx, true, func(ctx context.Context) (*Leadership, error) {
		s, err := c.register(ctx, c.cfg.Queue.Enter)
		if err != nil {
			return nil, err
		}
		place = c.placed(s)
		return nil, c.uninterrupted(ctx, s)
	})
	return place, c.failed("register", err)
}

// placed is where a standing begins. Its place must not be in use by a call.
func (c *Candidate) placed(s *standing) Place {
	place := Place{Key: c.key, Token: s.token, Queue: s.place.Queue}
	if len(s.place.Ahead) > 0 {
		place.Predecessor = s.place.Ahead[0].Key
	}
	return place
}

// Await blocks until a registered candidate leads. It ends like Campaign; when
// ctx ends, so does the candidacy. Without Register: eldest.ErrNotRegistered.
func (c *Candidate) Await(ctx context.Context) (*Leadership, error) {
	l, err := c.during(ctx, false, func(ctx context.Context) (*Leadership, error) {
		s, err := c.current()
		if err != nil {
			return nil, err
		}
		return c.await(ctx, s)
	})
	return l, c.failed("await", err)
}

// Try leads at once or not at all: if any candidate stands it returns an error
// that wraps eldest.ErrNotElected and has not queued. One request on a healthy
// cluster. (Where foreign keys are in the range it has to stand for a moment to find
// out, and leaves again.) It blocks only for etcd's answers, and fails like Campaign.
func (c *Candidate) Try(ctx context.Context) (*Leadership, error) {
	l, err := c.during(ctx, true, func(ctx context.Context) (*Leadership, error) {
		s, err := c.register(ctx, c.cfg.Queue.EnterAlone)
		if errors.Is(err, eldest.ErrForeignKey) {
			s, err = c.register(ctx, c.cfg.Queue.Enter)
		}
		if err != nil {
			return nil, err
		}
		for s.place.Unknown() {
			if s.place, err = c.ahead(ctx, s.place, 0); err == nil && s.place.Unknown() {
				err = retry.Sleep(ctx, c.cfg.Backoff(0)) // as in await
			}
			if err != nil {
				return nil, c.drop(ctx, s, err)
			}
		}
		if len(s.place.Ahead) > 0 {
			err := fmt.Errorf("%w: %q", eldest.ErrNotElected, s.place.Ahead[0].Key)
			if lerr := c.leave(ctx, s, eldest.ErrWithdrawn); lerr != nil {
				err = fmt.Errorf("%w; leaving the queue again: %w", err, lerr)
			}
			return nil, err
		}
		l, err := c.win(ctx, s)
		if err != nil {
			return nil, c.drop(ctx, s, err)
		}
		return l, nil
	})
	return l, c.failed("try", err)
}

// during runs the one call that may register or wait at a time.
func (c *Candidate) during(ctx context.Context, register bool, f func(context.Context) (*Leadership, error)) (*Leadership, error) {
	attempt, end, err := c.begin(ctx, register)
	if err != nil {
		return nil, err
	}
	defer end()
	return f(attempt)
}

// register enters the queue and stands. On error nothing stands.
func (c *Candidate) register(ctx context.Context, enter entering) (*standing, error) {
	if err := c.endDrained(ctx); err != nil {
		return nil, err
	}
	// The last standing gives its claim up first.
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if last != nil {
		if err := retry.Wait(ctx, last.disposed); err != nil {
			return nil, err
		}
	}
	claim, err := c.cfg.Session.Claims().Claim(c.name())
	if err != nil {
		return nil, err
	}
	place, left, err := c.hold(ctx, claim, enter)
	left.unsure = left.unsure || claim.Owed()
	if err != nil {
		if left.unsure || left.key {
			c.cleanUp(context.Background(), func() {}, make(chan struct{}, 1), claim, 0, left.unsure)
		} else {
			claim.Release()
		}
		return nil, err
	}
	s := c.stand(claim, place, left.unsure)
	if place.Adopted {
		if err := c.adopt(ctx, s); err != nil {
			return nil, c.drop(ctx, s, err)
		}
	}
	return s, nil
}

// leftover is what a registration may leave behind: a key that is to be removed, or a
// request of unknown outcome.
type leftover struct{ key, unsure bool }

// hold enters the queue and holds the key that it finds. Invariant: what is adopted was
// never given up here, by this candidate or by one before it on the same lease; it is a
// registration of now whose reply was lost, or what lease.Resume is to take over. A key
// that was given up, and is there still, is removed, and the queue entered anew (G2).
func (c *Candidate) hold(ctx context.Context, claim *claims.Claim, enter entering) (place txn.Place, left leftover, err error) {
	for {
		var unsure bool
		place, unsure, err = c.enter(ctx, enter)
		left.unsure = left.unsure || unsure
		if err == nil {
			err = claim.Hold(place.Token)
		}
		if !errors.Is(err, claims.ErrDoomed) {
			return place, left, err
		}
		if err = c.remove(ctx, claim, place.Token); err != nil {
			left.key = true
			return place, left, err
		}
	}
}

// entering is Queue.Enter or Queue.EnterAlone.
type entering func(ctx context.Context, kv clientv3.KV, e txn.Entry) (txn.Place, error)

// enter sends the registration until its outcome is known; sending it again is
// safe, because it finds its own key. unsure says that a request was sent whose
// outcome stayed unknown: it may have arrived, or may yet arrive.
func (c *Candidate) enter(ctx context.Context, enter entering) (p txn.Place, unsure bool, err error) {
	c.mu.Lock()
	entry := c.entry
	c.mu.Unlock()
	err = c.policy("register").Until(ctx, func(once context.Context) (err error) {
		p, err = enter(once, c.cfg.KV, entry)
		unsure = unsure || errors.Is(err, eldest.ErrOutcomeUnknown)
		switch {
		case rpcerr.Is(err, rpctypes.ErrLeaseNotFound):
			return ask.Final(fmt.Errorf("%w: %w", eldest.ErrSessionLost, err))
		case settles(err), errors.Is(err, eldest.ErrNotElected), errors.Is(err, eldest.ErrForeignKey):
			return ask.Final(err)
		}
		return err
	})
	return p, unsure, err
}

// policy is how a candidate asks etcd for op.
func (c *Candidate) policy(op string) ask.Policy {
	return ask.Policy{Client: c.cfg.KV, Timeout: c.cfg.Timeout, Backoff: c.cfg.Backoff, Failed: c.retrying(op)}
}

// settles reports whether an answer of the queue is one that asking again would
// not change.
func settles(err error) bool {
	return errors.Is(err, eldest.ErrDeposed) || errors.Is(err, eldest.ErrInvalid)
}

// adopt makes a key that was there already ours: with our value, and a place that
// is known.
func (c *Candidate) adopt(ctx context.Context, s *standing) error {
	c.mu.Lock()
	entry := c.entry
	c.mu.Unlock()
	if !bytes.Equal(s.place.Value, entry.Value) {
		err := c.policy("proclaim").Until(ctx, func(once context.Context) error {
			err := c.proclaim(once, s, entry.Value)
			if settles(err) {
				return ask.Final(err)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return c.look(ctx, s, 0)
}

// registered tells the hooks of a place. The caller holds mu.
func (c *Candidate) registered(s *standing) {
	event := RegisteredEvent{
		Candidate: c, Election: c.cfg.Election, Key: c.key, Token: s.token, Queue: s.place.Queue, Adopted: s.place.Adopted,
		At: s.since,
	}
	if len(s.place.Ahead) > 0 {
		event.Predecessor = s.place.Ahead[0].Key
	}
	call(c, c.cfg.Hooks.Registered, event)
	c.foreign(s.place)
}

func (c *Candidate) foreign(p txn.Place) {
	for _, key := range p.Foreign {
		call(c, c.cfg.Hooks.Foreign, ForeignEvent{Election: c.cfg.Election, Key: key})
	}
}

// uninterrupted returns nil if the call has not been interrupted, so that it may
// report success; Withdraw and Close act on the standing from then on. Else it ends
// the candidacy and returns why.
func (c *Candidate) uninterrupted(ctx context.Context, s *standing) error {
	c.mu.Lock()
	err := context.Cause(ctx)
	_ = c.cfg.Session.Holds(0) // reads the clock: what has passed ends the standing
	if s.ended() {
		err = context.Cause(s.ctx)
	}
	if err == nil {
		c.call, c.backing = nil, nil // the next call does not take the step for its own
		c.turned()
	}
	c.mu.Unlock()
	if err != nil {
		return c.drop(ctx, s, err)
	}
	return nil
}

// drop ends a candidacy that failed, without waiting for etcd, and returns the
// error to report: why the standing ended, if it ended by itself, else err.
func (c *Candidate) drop(ctx context.Context, s *standing, err error) error {
	if ended := context.Cause(s.ctx); ended != nil {
		err = ended
	} else if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	c.lost(s, err)
	return err
}
