package elector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

// round is one session and what is done with it. It belongs to Run's goroutine.
type round struct {
	e    *Elector
	lead func(context.Context, *Leadership) error

	clients   Clients
	session   *lease.Session
	candidate *election.Candidate
	// closing are the observers that are being closed, and what serves transfers: they
	// wait for hooks of the user's, which must hold up neither the win nor the loss.
	closing sync.WaitGroup
	// lasted is how long the node led or, if it never did, stood.
	lasted time.Duration
}

// run returns why the round ended, when nothing of it is going on any more.
func (r *round) run(ctx context.Context) error {
	over := false
	defer func() {
		if !over && r.session != nil {
			r.session.Abandon() // a panic of the user's codec: nobody else would end it
		}
	}()
	err := r.play(ctx)
	over = true
	return err
}

func (r *round) play(ctx context.Context) error {
	if err := r.open(ctx); err != nil {
		r.e.publish(unknown(err), nil)
		return err
	}
	stood := time.Now()
	l, err := r.stand(ctx)
	if err != nil {
		r.lasted = time.Since(stood)
		r.e.publish(unknown(err), nil)
		r.leave(ctx)
		return err
	}
	for {
		err = r.tenure(ctx, l)
		if !errors.Is(err, eldest.ErrSuspended) || ctx.Err() != nil || r.session.Err() != nil {
			break
		}
		// The key stands: who is suspended leads on, or was evicted.
		if l, err = r.candidate.Await(ctx); err != nil {
			r.e.publish(unknown(err), nil)
			break
		}
	}
	r.leave(ctx)
	return err
}

// open gets clients and a session, and makes the candidate. On error nothing is left.
func (r *round) open(ctx context.Context) (err error) {
	if r.clients, r.session, err = r.e.cfg.open(ctx); err != nil {
		return err
	}
	if err = r.candidacy(); err != nil {
		r.leave(ctx)
	}
	return err
}

// open gets clients and opens a session.
func (c *Config) open(ctx context.Context) (clients Clients, session *lease.Session, err error) {
	if clients, err = c.Source(ctx); err != nil {
		return clients, nil, failed("run", c.Election, fmt.Errorf("no clients: %w", err))
	}
	if clients.KV == nil || clients.Watcher == nil || clients.Lease == nil {
		return clients, nil, failed("run", c.Election, invalid("Config.Source returned Clients without a KV, a Watcher or a Lease"))
	}
	cfg := c.Session
	cfg.Lease, cfg.Majority = clients.Lease, clients.Majority
	bounded, cancel := context.WithTimeoutCause(ctx, opening, fmt.Errorf("%w: no lease within %v", eldest.ErrUnavailable, opening))
	defer cancel()
	session, err = lease.Open(bounded, cfg)
	return clients, session, err
}

// candidacy makes the candidate of the session.
func (r *round) candidacy() (err error) {
	cfg := r.e.cfg.Candidate
	cfg.Session, cfg.KV, cfg.Watcher = r.session, r.clients.KV, r.clients.Watcher
	if cfg.Value, err = r.e.cfg.value(r.e.instance, r.session.TTL()); err != nil {
		return r.e.failed("run", err)
	}
	r.candidate, err = election.New(cfg)
	return err
}

// stand evicts what this node left in the queue earlier, enters it, and waits, following
// whoever leads, until the node does. A node that is not in the queue follows nobody: it
// would never be told that its turn has come.
func (r *round) stand(ctx context.Context) (*Leadership, error) {
	if err := r.evict(ctx); err != nil {
		return nil, err
	}
	if _, err := r.candidate.Register(ctx); err != nil {
		return nil, err
	}
	r.serve()
	stop, err := r.follow(ctx)
	if err != nil {
		return nil, err
	}
	// Before anything else is published: a leader follows nobody.
	defer stop()
	return r.candidate.Await(ctx)
}

// serve lets the node be asked to requeue or to drain until its session ends, which it
// does in leave.
func (r *round) serve() {
	e := r.e
	if !e.cfg.Transfer {
		return
	}
	cfg := e.cfg.Serve
	cfg.Candidate, cfg.Session, cfg.KV, cfg.Watcher = r.candidate, r.session, r.clients.KV, r.clients.Watcher
	r.closing.Go(func() {
		err := transfer.Serve(context.Background(), cfg)
		if r.session.Err() == nil {
			e.log(func() {
				e.cfg.Logger.Warn("no part in transfers", "election", e.cfg.Election, "node", e.cfg.NodeID, "reason", err)
			})
		}
	})
}

// leave says good-bye to etcd: the key goes with the lease, in one request. The
// contexts are fresh ones, because Run's has often ended.
func (r *round) leave(ctx context.Context) {
	if r.session.Err() != nil {
		r.e.ghosts = true // whether the lease goes at once, we are not told
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.e.cfg.Leave)
	defer cancel()
	if err := r.session.Close(late); err != nil {
		r.abandon(err)
	}
	if r.candidate != nil {
		// The session has ended; what is waited for is on this side.
		local, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.e.cfg.Leave)
		defer cancel()
		_ = r.candidate.Close(local)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			r.closing.Wait()
		}()
		_ = retry.Wait(local, closed)
	}
}

// abandon leaves the lease to its deadline. If its key still stands when a later round
// reaches etcd, that one removes it.
func (r *round) abandon(reason error) {
	e := r.e
	e.ghosts = true
	r.session.Abandon()
	id := fmt.Sprintf("%x", r.session.ID())
	e.log(func() {
		e.cfg.Logger.Warn("lease left to expire", "election", e.cfg.Election, "node", e.cfg.NodeID, "lease", id, "reason", reason)
	})
}

// stable reports whether the round lasted long enough for the back-off to start anew.
func (r *round) stable() bool {
	return r.session != nil && r.lasted >= r.e.cfg.stable(r.session)
}

// stable is how long a round must last for the back-off to start anew.
func (c *Config) stable(s *lease.Session) time.Duration {
	if c.Stable == 0 {
		return 2 * s.TTL()
	}
	return c.Stable
}
