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

// round is one session and its use. It belongs to Run's goroutine.
type round struct {
	e    *Elector
	lead func(context.Context, *Leadership) error

	clients   Clients
	session   *lease.Session
	candidate *election.Candidate
	standby   *standby // nil without Config.Standby, and before the registration
	// newest is the highest token of the leaders that this round has seen.
	newest eldest.Token
	// closing counts the goroutines that close observers or serve transfers. They wait for the
	// user's hooks, which must delay neither the win nor the loss.
	closing sync.WaitGroup
	// lasted is how long the node led or, if it never led, was a candidate.
	lasted time.Duration
}

// run returns when nothing of the round is running any more; the error is why it ended.
func (r *round) run(ctx context.Context) error {
	over := false
	defer func() {
		if !over && r.session != nil {
			r.unregistered()
			r.session.Abandon() // the user's codec panicked: nothing else ends the session
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
		return r.afterStandBy(ctx, err)
	}
	for {
		err = r.tenure(ctx, l)
		// The error of the lead function may wrap the suspension of another tenure.
		if !errors.Is(err, eldest.ErrSuspended) || !errors.Is(l.Err(), eldest.ErrSuspended) || ctx.Err() != nil || r.session.Err() != nil {
			break
		}
		// The key may still exist: a suspended leader leads again, unless it was evicted.
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
	bounded, cancel := context.WithTimeoutCause(ctx, opening, fmt.Errorf("%w: no lease within %v", eldest.ErrUnavailable, opening))
	defer cancel()
	session, err = lease.Open(bounded, lease.Config{Lease: clients.Lease, Majority: clients.Majority, Options: c.Session})
	return clients, session, err
}

// candidacy makes the candidate of the session.
func (r *round) candidacy() (err error) {
	value, err := r.registering()
	if err != nil {
		return r.e.failed("run", err)
	}
	r.candidate, err = election.New(election.Config{
		Election: r.e.cfg.Election, Session: r.session, KV: r.clients.KV, Watcher: r.clients.Watcher, Value: value,
		Options: r.e.cfg.Candidate,
	})
	return err
}

// stand evicts what this node left in the queue earlier, registers, and waits until the node leads,
// following the leader and running the standby function meanwhile. It does not follow before it has
// registered: a node that is not in the queue is never notified that it leads.
func (r *round) stand(ctx context.Context) (*Leadership, error) {
	if err := r.evict(ctx); err != nil {
		return nil, err
	}
	if _, err := r.candidate.Register(ctx); err != nil {
		return nil, err
	}
	r.serve()
	r.publishAddress()
	r.standBy(ctx)
	stop, err := r.follow(ctx)
	var l *Leadership
	if err == nil {
		l, err = r.candidate.Await(ctx)
		stop() // before anything else is published: a leader follows no node
		// A younger candidate led meanwhile, so this one's key was deleted after the read that proved its
		// win, by hand for example, and it is still to receive that. The candidate's own hooks have
		// reported the win.
		if err == nil && l.Token() < r.newest {
			err = r.e.failed("run", fmt.Errorf("%w: key %q: a candidate with the later token %d led before", eldest.ErrDeposed, l.Key(), r.newest))
		}
	}
	return l, r.standDown(ctx, err)
}

// serve accepts requests to requeue or to drain until the node's session ends, which is in leave.
func (r *round) serve() {
	e := r.e
	if !e.cfg.Transfer {
		return
	}
	cfg := transfer.Config{
		Candidate: r.candidate, Session: r.session, KV: r.clients.KV, Watcher: r.clients.Watcher, ServeOptions: e.cfg.Serve,
	}
	r.closing.Go(func() {
		err := transfer.Serve(context.Background(), cfg)
		if r.session.Err() == nil {
			e.log.warn("this node does not take part in transfers", "reason", err)
		}
	})
}

// leave closes the session: one request revokes the lease and so deletes the key. The contexts are
// new ones, because Run's has often ended.
func (r *round) leave(ctx context.Context) {
	r.unregistered()
	if r.session.Err() != nil {
		r.e.leftKeys = true // it is unknown whether the lease is revoked at once
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.e.cfg.Leave)
	defer cancel()
	if err := r.session.Close(late); err != nil {
		r.abandon(err)
	}
	if r.candidate != nil {
		// The session has ended; only work in this process is waited for.
		local, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.e.cfg.Leave)
		defer cancel()
		_ = r.candidate.Close(local)
		r.closed(local)
	}
}

// closed waits for the goroutines that wait for the user's hooks, or until ctx ends.
func (r *round) closed(ctx context.Context) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		r.closing.Wait()
	}()
	_ = retry.Wait(ctx, closed)
}

// abandon leaves the lease to its deadline. If its key still exists when a later round reaches
// etcd, that round removes the key.
func (r *round) abandon(reason error) {
	e := r.e
	e.leftKeys = true
	r.unregistered()
	r.session.Abandon()
	e.log.warn("lease left to expire", "lease", fmt.Sprintf("%x", r.session.ID()), "reason", reason)
}

// stable reports whether the round lasted long enough for the back-off to start anew.
func (r *round) stable() bool {
	return r.session != nil && r.lasted >= r.e.cfg.stable(r.session)
}

// stable returns how long a round must last for the back-off to start anew.
func (c *Config) stable(s *lease.Session) time.Duration {
	if c.Stable == 0 {
		return 2 * s.TTL()
	}
	return c.Stable
}
