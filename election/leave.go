package election

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/ask"
	"github.com/eldest-io/eldest/internal/claims"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/watch"
	"github.com/eldest-io/eldest/txn"
)

// Withdraw takes a waiting candidate out of the queue: its campaign, if one is
// going, returns an error that wraps eldest.ErrWithdrawn now, and the key is
// deleted. It blocks until the server has confirmed that, the session has ended,
// or ctx has; in the last case it returns ctx's error, the key is removed in the
// background while the session lives, and Withdraw may be called again. Errors:
// eldest.ErrLeading (resign instead), eldest.ErrNotRegistered.
func (c *Candidate) Withdraw(ctx context.Context) error {
	if ctx == nil {
		return c.failed("withdraw", fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	_ = c.cfg.Session.Holds(0) // reads the clock: what has passed has ended the candidacy
	c.mu.Lock()
	c.reap()
	s, last, call := c.standing, c.last, c.call
	again := c.previous != nil && errors.Is(c.previous.told, eldest.ErrWithdrawn)
	if s.drained() && call != nil {
		s = nil // a campaign is about to resign it
	}
	leads := s != nil && s.won()
	if !leads {
		call.interrupt(eldest.ErrWithdrawn)
	}
	c.mu.Unlock()
	switch {
	case leads:
		return c.failed("withdraw", eldest.ErrLeading)
	case s != nil:
		err := c.leave(ctx, s, eldest.ErrWithdrawn)
		if errors.Is(err, eldest.ErrNotLeading) {
			err = c.notRegistered(s)
		}
		return c.failed("withdraw", err)
	case call != nil:
	case last != nil && errors.Is(context.Cause(last.ctx), eldest.ErrWithdrawn):
		return c.failed("withdraw", c.depart(ctx, last))
	case again: // a registration that never stood
		return c.failed("withdraw", c.settle(ctx))
	default:
		return c.failed("withdraw", c.notRegistered(last))
	}
	// The call that registers tidies up after itself.
	err := retry.Wait(ctx, call.done)
	if err == nil && last != nil && last.ended() {
		err = c.depart(ctx, last)
	}
	if err == nil {
		err = c.settle(ctx)
	}
	return c.failed("withdraw", err)
}

// leave ends a standing by our own will, the context first, the key after that,
// and waits until the key is gone. Called again it has the key removed again, if it may
// be there still. It returns nil, ctx's cause, what etcd refused, or why there was
// nothing to leave.
func (c *Candidate) leave(ctx context.Context, s *standing, cause error) error {
	finished := c.finish(s, cause)
	ended := context.Cause(s.ctx)
	if left := errors.Is(ended, eldest.ErrResigned) || errors.Is(ended, eldest.ErrWithdrawn); left && !finished {
		return c.depart(ctx, s) // whatever became of the session since
	}
	if errors.Is(ended, eldest.ErrDeposed) || c.cfg.Session.Err() != nil {
		// It ended by itself, or did so just now; the key went, or goes with its
		// lease.
		if finished {
			c.clean(s)
		}
		if finished && errors.Is(ended, cause) {
			return nil // we were first, and the session ended in the same moment
		}
		return fmt.Errorf("%w: %w", eldest.ErrNotLeading, reason(ended))
	}
	return c.depart(ctx, s)
}

// depart removes the key of a standing that has been finished, and waits until it is
// gone. It returns nil, also where the session has ended before, ctx's cause, the
// session's, or what etcd refused; then the key is removed in the background, and depart
// may be called again.
func (c *Candidate) depart(ctx context.Context, s *standing) error {
	select {
	case s.departing <- struct{}{}:
	default: // another call is at it
		select {
		case s.departing <- struct{}{}:
		case <-s.present.Done():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-s.departing }()
	// The end of the standing ends the watch of the own key. Etcd hears of that before it
	// has agreed on the deletion, nearly always; where it does not, we are told of our
	// own deletion, and nobody listens. To wait for the end of the watch would keep the
	// successor waiting.
	if s.present.Err() == nil && c.cfg.Session.Err() == nil {
		if err := c.remove(ctx, s.claim, s.token); err != nil {
			c.clean(s)
			return err
		}
	}
	c.left(s)
	return nil
}

// left disposes of the claim of a standing whose key is gone, or goes with its lease.
func (c *Candidate) left(s *standing) {
	s.claim.Clear()
	s.gone()
	c.clean(s)
}

// clean disposes of the claim of a standing: in the background its key is removed, until
// that is certain, and a registration of unknown outcome is looked out for.
func (c *Candidate) clean(s *standing) {
	s.disposing.Do(func() {
		if s.present.Err() == nil || s.unsure {
			c.cleanUp(s.present, s.gone, s.departing, s.claim, s.token, s.unsure)
		} else {
			s.claim.Release()
		}
		close(s.disposed)
	})
}

// cleanUp gives up a claim of which something may be left. In the background the life of
// the key that token names is removed (0: any), however often etcd refuses, unless present
// ends before; then gone is called. If unsure, a late registration that turns up under the
// key is removed, too. All of it ends with the session, which takes the key along, and
// when the key is claimed again: by then its token is doomed.
func (c *Candidate) cleanUp(present context.Context, gone func(), departing chan struct{}, claim *claims.Claim, token eldest.Token, unsure bool) {
	cleaning := claim.Clean(unsure, func(ctx context.Context) {
		removing, done := context.WithCancel(ctx)
		detach := context.AfterFunc(present, done)
		err := c.policy("remove key").Insist(removing, func(once context.Context) error {
			select { // one at a time: a caller that waits for the same sends nothing of its own
			case departing <- struct{}{}:
				defer func() { <-departing }()
			case <-once.Done():
				return once.Err()
			}
			if present.Err() != nil {
				return nil
			}
			return c.removeOnce(once, claim, token)
		})
		detach()
		done()
		if err == nil || present.Err() != nil || c.cfg.Session.Err() != nil {
			claim.Clear()
			gone()
		}
		if unsure {
			c.sweep(ctx, claim)
		}
	})
	if !cleaning {
		gone()
	}
}

// settle removes what a registration of unknown outcome has left, if the background has
// not done so yet.
func (c *Candidate) settle(ctx context.Context) error {
	if claim := c.cfg.Session.Claims().Cleaning(c.name()); claim != nil {
		return c.remove(ctx, claim, 0)
	}
	return nil
}

// name is the key as this candidate's client sees it: in another namespace it is another
// key.
func (c *Candidate) name() claims.Name {
	return claims.Name{Client: claims.Comparable(c.cfg.KV), Key: c.key}
}

// remove deletes the key as removeOnce does, until that is confirmed, ctx or the session
// ends (the cause), or etcd refuses.
func (c *Candidate) remove(ctx context.Context, claim *claims.Claim, token eldest.Token) error {
	live, done := c.withSession(ctx)
	defer done()
	return c.policy("remove key").Until(live, func(once context.Context) error { return c.removeOnce(once, claim, token) })
}

// removeOnce deletes the key in the life that token names, or, for 0, in whatever life is
// bound to our lease and not another candidate's. The life is doomed before the request is
// sent.
func (c *Candidate) removeOnce(ctx context.Context, claim *claims.Claim, token eldest.Token) error {
	if token == 0 {
		resp, err := c.cfg.KV.Get(ctx, c.key)
		if err != nil || len(resp.Kvs) == 0 || !c.ours(claim, resp.Kvs[0]) {
			return err
		}
		token = eldest.Token(resp.Kvs[0].CreateRevision)
	}
	if err := claim.Doom(token); err != nil {
		return ask.Final(err)
	}
	err := txn.Leave(ctx, c.cfg.KV, c.key, token)
	if err == nil {
		claim.Gone(token)
	}
	return err
}

// ours reports whether a key is bound to our lease, and not held by another candidate.
func (c *Candidate) ours(claim *claims.Claim, kv *mvccpb.KeyValue) bool {
	return kv.Lease == int64(c.cfg.Session.ID()) && claim.Free(eldest.Token(kv.CreateRevision))
}

// sweep removes its key whenever it turns up, until ctx ends or the client is closed.
// What etcd refuses meanwhile is tried again.
func (c *Candidate) sweep(ctx context.Context, claim *claims.Claim) {
	ours := func(kv *mvccpb.KeyValue) bool { return c.ours(claim, kv) }
	absent := func(answer clientv3.OpResponse) bool {
		kvs := answer.Get().Kvs
		return len(kvs) == 0 || !ours(kvs[0])
	}
	late := func() error {
		watching, release := context.WithCancel(ctx)
		defer release()
		return c.source.Follow(watching, watch.Target{
			Key:      c.key,
			Snapshot: func(resp *clientv3.GetResponse) bool { return len(resp.Kvs) > 0 && ours(resp.Kvs[0]) },
			Change: func(_ int64, events []*clientv3.Event) bool {
				return events[0].Type == mvccpb.PUT && ours(events[0].Kv)
			},
			// Late requests come from networks in which streams fall silent.
			Probe: func() (clientv3.Op, func(clientv3.OpResponse) bool) { return clientv3.OpGet(c.key), absent },
		})
	}
	for failures := 0; ctx.Err() == nil; failures++ {
		err := late()
		if err == nil {
			err = c.remove(ctx, claim, 0)
		}
		if err == nil {
			failures = -1
			continue
		}
		if errors.Is(err, eldest.ErrClosed) {
			return
		}
		if retry.Sleep(ctx, c.cfg.Backoff(failures)) != nil {
			return
		}
	}
}

// withSession returns ctx, ended with the session as well.
func (c *Candidate) withSession(ctx context.Context) (context.Context, context.CancelFunc) {
	merged, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(c.cfg.Session.Context(), func() { cancel(c.cfg.Session.Err()) })
	return merged, func() { detach(); cancel(nil) }
}
