package election

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
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
	if s == nil || !s.won() {
		call.interrupt(eldest.ErrWithdrawn)
	}
	c.mu.Unlock()
	switch {
	case s != nil && s.won():
		return c.failed("withdraw", eldest.ErrLeading)
	case s != nil:
		err := c.leave(ctx, s, eldest.ErrWithdrawn)
		if errors.Is(err, eldest.ErrNotLeading) {
			err = c.notRegistered(s)
		}
		return c.failed("withdraw", err)
	case call != nil:
	case last != nil && errors.Is(context.Cause(last.ctx), eldest.ErrWithdrawn):
		return c.failed("withdraw", last.departed(ctx))
	case again: // a registration that never stood
		return c.failed("withdraw", c.cfg.Session.Settled(ctx, c.key))
	default:
		return c.failed("withdraw", c.notRegistered(last))
	}
	// The call that registers tidies up after itself.
	err := retry.Wait(ctx, call.done)
	if err == nil {
		err = c.cfg.Session.Settled(ctx, c.key)
	}
	return c.failed("withdraw", err)
}

// leave ends a standing by our own will, the context first, the key after that,
// and waits until the key is gone. Whoever calls it again waits for the same. It
// returns nil, ctx's cause, or why there was nothing to leave.
func (c *Candidate) leave(ctx context.Context, s *standing, cause error) error {
	finished := c.finish(s, cause)
	switch ended := context.Cause(s.ctx); {
	case errors.Is(ended, eldest.ErrResigned) && !finished, errors.Is(ended, eldest.ErrWithdrawn) && !finished:
		// Left already, whatever became of the session since.
		return s.departed(ctx)
	case errors.Is(ended, eldest.ErrDeposed), c.cfg.Session.Err() != nil:
		// It ended by itself, or did so just now; the key went, or goes with its
		// lease.
		if finished {
			c.tend(s)
		}
		if finished && errors.Is(ended, cause) {
			return nil // we were first, and the session ended in the same moment
		}
		return fmt.Errorf("%w: %w", eldest.ErrNotLeading, reason(ended))
	case !finished:
		return s.departed(ctx)
	}
	return c.depart(ctx, s)
}

// depart removes the key of a standing that the caller has finished, and waits until it
// is gone. It returns nil, ctx's cause, the session's, or what etcd refused; then the
// key is removed in the background.
func (c *Candidate) depart(ctx context.Context, s *standing) error {
	// The end of the standing ends the watch of the own key. Etcd hears of that before it
	// has agreed on the deletion, nearly always; where it does not, we are told of our
	// own deletion, and nobody listens. To wait for the end of the watch would keep the
	// successor waiting.
	live, done := c.withSession(ctx)
	err := c.remove(live, s.token)
	done()
	if err != nil {
		c.tend(s)
		return err
	}
	s.gone(nil)
	if s.unsure {
		c.tendKey(0, true, nil)
		close(s.disposed)
	} else {
		c.release(s)
	}
	return nil
}

// release gives up the claim on a key of which nothing is left.
func (c *Candidate) release(s *standing) {
	c.cfg.Session.Release(c.key)
	close(s.disposed)
}

// tend gives up the claim on a key of which something may be left.
func (c *Candidate) tend(s *standing) {
	c.tendKey(s.token, s.unsure, s.gone)
	close(s.disposed)
}

// tendKey leaves the claim on the key to the session's background: there the life
// of the key that token names is removed (0: any), and gone called after that, if
// not nil. If unsure, a late registration that turns up under the key is swept. A
// session that has ended takes the key with it.
func (c *Candidate) tendKey(token eldest.Token, unsure bool, gone func(error)) {
	if gone == nil {
		gone = func(error) {}
	}
	remove := func(ctx context.Context) {
		err := c.remove(ctx, token)
		if ctx.Err() != nil {
			err = nil
		}
		if err != nil {
			c.cfg.Session.Leave(c.key, token) // before anybody can claim the key
		}
		gone(err)
	}
	sweep := c.sweep
	if !unsure {
		sweep = nil
	}
	if !c.cfg.Session.Tend(c.key, remove, sweep) {
		gone(nil)
	}
}

// remove deletes the own key in the life that token names, or, for 0, in
// whatever life bound to our lease, and retries until that is confirmed, ctx ends
// (its cause) or etcd refuses for good.
func (c *Candidate) remove(ctx context.Context, token eldest.Token) error {
	return c.policy("remove key").Until(ctx, func(once context.Context) error {
		if token > 0 {
			return txn.Leave(once, c.cfg.KV, c.key, token)
		}
		return txn.Sweep(once, c.cfg.KV, c.cfg.entry())
	})
}

// sweep removes the own key whenever it turns up, until ctx ends.
func (c *Candidate) sweep(ctx context.Context) {
	ours := func(kv *mvccpb.KeyValue) bool { return kv.Lease == int64(c.cfg.Session.ID()) }
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
	for ctx.Err() == nil {
		if late() != nil || c.remove(ctx, 0) != nil {
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
