package curator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
)

// Curator is one node of a leader-elected service. Made by New; it does nothing until
// Run. All methods are safe for concurrent use.
type Curator struct {
	cfg     Config
	elector *elector.Elector
	front   *front
	started atomic.Bool

	// answering ends when the node is about to stop: what streams wait for news then end.
	answering context.Context
	hush      context.CancelFunc
}

// New makes a curator. It sends nothing and does not touch the listener. The error
// wraps eldest.ErrInvalid.
func New(cfg Config) (*Curator, error) {
	c, err := build(cfg, everyday)
	if err != nil {
		var op *eldest.OpError
		if errors.As(err, &op) { // the elector's
			return nil, err
		}
		return nil, failed("new curator", cfg.Elector.Election, err)
	}
	return c, nil
}

func build(cfg Config, beat heartbeat) (*Curator, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Curator{cfg: cfg}
	if c.elector, err = elector.New(cfg.Elector); err != nil {
		return nil, err
	}
	if !utf8.ValidString(cfg.Elector.Election) {
		return nil, invalid("the name %q is not UTF-8, and callers are told it", cfg.Elector.Election)
	}
	c.front = newFront(cfg, beat)
	c.answering, c.hush = context.WithCancel(context.Background())
	announce(c.answering, c.front.local, c.self(), c)
	registerHealth(c.answering, c.front.local, c, &c.front.router.Board)
	if cfg.Local != nil {
		cfg.Local(c.front.local)
	}
	late := func(err error) {
		cfg.Logger.Error("service not registered", "election", cfg.Elector.Election, "node", cfg.Elector.NodeID, "error", err)
	}
	c.front.local.late = late
	if _, err := c.front.local.close(); err != nil {
		return nil, err
	}
	if c.front.reads, err = newReads(cfg, c.front.local.names, late); err != nil {
		return nil, err
	}
	return c, nil
}

// Run serves until ctx ends, or the listener fails; then it returns an error that wraps
// ctx's cause, or the listener's. Calls are accepted at once, and answered wherever the
// leader is. What the leader serves is made by Config.Services, once for each tenure.
//
// At the end, in this order: no call is begun here any more, and the other nodes are told; the
// unary calls of this node's tenure, if it leads, are waited for; leadership is given up, as
// elector.Elector.Withdraw describes it; no connection is accepted any more, and calls that were forwarded,
// or that wait for the next leader and are forwarded to it then, are waited for; the server
// is closed, and with it what is still in flight (Unavailable). Both waits are bounded by
// Config.Grace. When Run has returned, nothing of it is left running; but for handlers
// and Config.Background that ignore their context: then, after Config.Elector.Drain, or a
// second more for services of Config.Local, the error wraps eldest.ErrStuck as well.
//
// A curator runs once; a second call returns eldest.ErrClosed.
func (c *Curator) Run(ctx context.Context) error {
	election := c.cfg.Elector.Election
	if ctx == nil {
		return failed("run curator", election, invalid("the context is nil"))
	}
	if !c.started.CompareAndSwap(false, true) {
		return failed("run curator", election, fmt.Errorf("%w: a curator runs once", eldest.ErrClosed))
	}
	return failed("run curator", election, c.run(ctx))
}

func (c *Curator) run(ctx context.Context) error {
	served, stood := make(chan error, 1), make(chan error, 1)
	go func() { served <- c.front.server.Serve(c.cfg.Listener) }()
	standing, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	go func() { stood <- c.elector.Run(standing, c.lead) }()
	heeding, deaf := context.WithCancel(context.Background())
	var heeds sync.WaitGroup
	heeds.Go(func() { c.heed(heeding) })
	heeds.Go(func() { c.narrate(heeding) })

	var cause error
	select {
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case err := <-served:
		cause = fmt.Errorf("the listener failed: %w", err)
	}
	c.hush()
	stopping := fmt.Errorf("%w: node %q is stopping", eldest.ErrClosed, c.cfg.Elector.NodeID)
	if t := c.front.router.retire(stopping); t != nil {
		t.settle(c.cfg.Grace)
	}
	_ = c.elector.Withdraw(standing, cause) // and follows the next leader, for those who wait
	if err := c.front.close(c.cfg.Grace, stopping); err != nil {
		cause = fmt.Errorf("%w: %w", cause, err)
	}
	leave(cause)
	if err := <-stood; errors.Is(err, eldest.ErrStuck) {
		cause = fmt.Errorf("%w: %w", cause, err)
	}
	deaf()
	heeds.Wait()
	_ = c.cfg.Listener.Close() // the server has, unless it never served
	return cause
}

// close ends the server: gracefully within limit, then the hard way, after calls that wait
// have been refused. The connections to the leader go last, for the calls that are still under
// way there. The error is eldest.ErrStuck if handlers do not return although their calls have
// ended: local ones, or what stands in front of all.
func (f *front) close(limit time.Duration, reason error) error {
	stopped, forced := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		f.server.GracefulStop()
	}()
	over := within(limit, stopped)
	f.router.stop(reason)
	if !over && !within(parting, stopped) {
		go func() {
			defer close(forced)
			f.server.Stop() // and this waits for handlers as well
		}()
		if !within(max(limit, stubborn), forced) || !within(stubborn, stopped) {
			f.router.close(errStopped)
			return fmt.Errorf("%w: a handler of a local service, or an interceptor, has not returned", eldest.ErrStuck)
		}
	}
	f.router.close(errStopped)
	f.crew.Wait()
	return nil
}

// parting is how long the answers to calls that have waited in vain may take to leave.
const parting = 100 * time.Millisecond

// stubborn is how long handlers may take to return whose connections are closed.
const stubborn = time.Second

// within reports whether done is closed in time.
func within(limit time.Duration, done <-chan struct{}) bool {
	patience := time.NewTimer(limit)
	defer patience.Stop()
	select {
	case <-done:
		return true
	case <-patience.C:
		return false
	}
}

var errStopped = errors.New("this node stopped")

// Status returns what this node is now; see elector.Elector.Status.
func (c *Curator) Status() elector.Status { return c.elector.Status() }

// Watch returns a watch of the status; see elector.Elector.Watch.
func (c *Curator) Watch() *elector.Watch { return c.elector.Watch() }

// RoleHandler returns an HTTP handler for load balancers: 200 while this node has the
// role, else 503, with the role, the node, and the leader's id, address and token as a
// JSON object. It may be mounted at any path. It never blocks, and works before, during
// and after Run.
func (c *Curator) RoleHandler(want elector.Role) http.Handler {
	return roleHandler{want: want, me: c.self(), life: life{c.answering}, statuses: c}
}

func (c *Curator) self() self {
	return self{
		election: c.cfg.Elector.Election, node: c.cfg.Elector.NodeID,
		instance: c.elector.Instance(), address: c.cfg.Elector.Address,
	}
}

func failed(op, election string, err error) error {
	if err == nil {
		return nil
	}
	return &eldest.OpError{Op: op, Election: election, Err: err}
}
