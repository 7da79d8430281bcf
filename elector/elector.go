package elector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/latest"
	"github.com/eldest-io/eldest/internal/retry"
)

// Elector keeps a node in its election. It is made by New and does nothing until Run. All methods
// are safe for concurrent use.
type Elector struct {
	cfg      Config
	instance string
	cell     latest.Cell[published]
	// addresses is where other nodes forward to.
	addresses latest.Cell[addresses]
	log       log
	running   atomic.Bool

	// withdrawing is ended by Withdraw. withdrawn is closed by Run when the node is no longer a
	// candidate after that.
	withdrawing context.Context //nolint:containedctx // an event that has a cause
	withdraw    context.CancelCauseFunc
	withdrawn   chan struct{}
	leave       sync.Once

	// stuck is closed when the lead or standby function that an earlier Run left behind has
	// returned; it is nil if there is none. It belongs to Run, as do the next two fields.
	stuck <-chan struct{}
	// earlier is true until a round has searched for keys of other instances with this NodeID.
	// leftKeys is true if keys of an earlier round may be in the queue.
	earlier, leftKeys bool
}

// New makes an elector. It sends nothing. The error wraps eldest.ErrInvalid.
func New(cfg Config) (*Elector, error) {
	cfg, err := cfg.withDefaults(cfg.Election)
	e := &Elector{cfg: cfg, instance: identity.NewInstance(), earlier: true, withdrawn: make(chan struct{})}
	e.withdrawing, e.withdraw = context.WithCancelCause(context.Background())
	if err == nil {
		_, err = cfg.value(e.instance, time.Second)
	}
	if err != nil {
		return nil, e.failed("new elector", err)
	}
	e.log.to, e.log.attrs = cfg.Logger, []any{"election", cfg.Election, "node", cfg.NodeID}
	e.cell.Set(published{status: unknown(e.failed("status", errNotRunning)).at(time.Now())})
	e.addresses.Set(addresses{now: cfg.Address})
	return e, nil
}

var (
	errNotRunning = fmt.Errorf("%w: Run is not running", eldest.ErrClosed)
	errNotYet     = fmt.Errorf("%w yet", eldest.ErrNotRegistered)
)

// Instance returns the ID of this instance of the node, which is also in the value of its key.
func (e *Elector) Instance() string { return e.instance }

// Run campaigns again and again until ctx ends; then it returns an error that wraps ctx's cause. A
// round is: get clients from Config.Source, open a session, register, follow the leader and run
// Config.Standby until this node leads, call lead, and leave. After each round, however it ended,
// another one follows after a back-off, which starts anew after a stable round.
//
// lead is called once for each tenure, on a goroutine of its own, never before an earlier call has
// returned (G7). Its context carries ctx's values and ends with ctx or the tenure, whichever is
// first. When lead returns, with or without an error, leadership is given up. A tenure ends in this
// order: lead's context ends; the status becomes unknown; Run waits for lead; the session is
// closed, with a context of its own that is bounded by Config.Leave.
//
// Run also waits for a lead function that ignores its context, and begins no other round meanwhile:
// a node that cannot serve does not campaign. Its key is kept while the lease is renewed, for
// Config.Drain; after that the lease is left to its deadline. If lead has still not returned when
// ctx has ended, Run returns without it, with an error that wraps eldest.ErrStuck. A later Run
// first waits for that function. Run waits for Config.Standby in the same way, but has given up its
// key by then.
//
// A key that an earlier round of this elector left is removed. Keys of other instances with the
// same Config.NodeID are removed only with Config.TakeOver; without it, the key of an instance that
// crashed stays until its lease expires. A second call while Run is running returns
// eldest.ErrCampaigning. When Run has returned the status is unknown, and nothing of it is still
// running, except a function that is stuck, and hooks and calls of Config.AddressOf that have not
// returned within Config.Leave.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context, l *Leadership) error) error {
	if ctx == nil || lead == nil {
		return e.failed("run", fmt.Errorf("%w: the context or the lead function is nil", eldest.ErrInvalid))
	}
	if !e.running.CompareAndSwap(false, true) {
		return e.failed("run", eldest.ErrCampaigning)
	}
	defer func() {
		e.running.Store(false) // before left checks withdrawing: Withdraw ends withdrawing first and then reads running
		e.left()
	}()
	e.publish(unknown(e.failed("status", errNotYet)), nil)
	defer func() { // also after a panic of the user's function
		over := errNotRunning
		if cause := context.Cause(ctx); cause != nil {
			over = fmt.Errorf("%w: %w", over, cause)
		}
		e.publish(unknown(e.failed("status", over)), nil)
		e.log.flush()
	}()
	return e.failed("run", e.rounds(ctx, lead))
}

// rounds returns when ctx has ended and the last round is over.
func (e *Elector) rounds(ctx context.Context, lead func(context.Context, *Leadership) error) error {
	standing, done := e.standing(ctx)
	defer done()
	if e.stuck != nil {
		if retry.Wait(standing, e.stuck) != nil {
			e.spectate(ctx)
			if e.isStuck() {
				return fmt.Errorf("%w: %w: the function of an earlier Run", context.Cause(ctx), eldest.ErrStuck)
			}
			return context.Cause(ctx)
		}
		e.stuck = nil
	}
	for attempt := 0; ; attempt++ {
		r := &round{e: e, lead: lead}
		err := r.run(standing)
		if standing.Err() != nil {
			e.spectate(ctx)
			if errors.Is(err, eldest.ErrStuck) && e.isStuck() {
				return fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			return context.Cause(ctx)
		}
		if r.stable() {
			attempt = 0
		}
		pause, level := e.cfg.Backoff(attempt), slog.LevelInfo
		if r.session == nil {
			level = slog.LevelWarn // no session was opened
		}
		e.log.line(level, "election round ended", "reason", err, "pause", pause)
		if retry.Sleep(standing, pause) != nil {
			e.spectate(ctx)
			return context.Cause(ctx)
		}
	}
}

// isStuck reports whether a function that was left behind is still running.
func (e *Elector) isStuck() bool {
	select {
	case <-e.stuck: // nil: drain has waited for it
		return false
	default:
		return e.stuck != nil
	}
}

// value returns the value of the node's key: its identity.
func (c *Config) value(instance string, granted time.Duration) ([]byte, error) {
	value, err := c.Codec.Encode(identity.Identity{
		NodeID: c.NodeID, Instance: instance, Address: c.Address, TTL: granted, Priority: c.Priority,
	})
	if err == nil && len(value) > election.MaxValue {
		err = invalid("Config.Codec makes a value of %d bytes, more than %d", len(value), election.MaxValue)
	}
	return value, err
}

func (e *Elector) failed(op string, err error) error { return failed(op, e.cfg.Election, err) }

func failed(op, election string, err error) error {
	if err == nil {
		return nil
	}
	return &eldest.OpError{Op: op, Election: election, Err: err}
}
