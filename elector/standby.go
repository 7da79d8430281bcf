package elector

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/latest"
	"github.com/eldest-io/eldest/internal/retry"
)

// Position is what a standby function is told: the leader, and this node's position in the queue.
type Position struct {
	// Status is this node's status: it follows a leader, or is unknown, with the reason.
	Status Status
	// Ahead is the number of candidates that registered before this node and are still queued, the
	// leader included. 1 means that this node is next, 0 that it is about to lead, and -1 that the
	// position is unknown. A node that requeues or yields goes to the end of the queue.
	Ahead int
}

// Positions reads the positions of a node that waits. It is for one goroutine at a time.
type Positions struct {
	election string
	reader   *latest.Reader[Position]
}

// Next returns the newest position if it has not returned it yet; otherwise it blocks for a newer
// one. The first call blocks until etcd has answered for the first time. Positions that were
// replaced in between are skipped. When ctx ends, Next returns its cause; when the standby
// function's own context has ended, it returns that cause after the newest position. Nothing is sent
// to etcd: a position is as old as the last event that etcd has sent to this node, and is unknown
// while etcd does not answer.
func (p *Positions) Next(ctx context.Context) (Position, error) {
	if ctx == nil {
		return Position{Ahead: -1}, failed("standby", p.election, invalid("the context is nil"))
	}
	position, err := p.reader.Next(ctx)
	if err != nil {
		return Position{Ahead: -1}, err
	}
	return position, nil
}

// errLeads is why a node follows no leader when its key is the eldest, and why the context of a
// standby function ends at the win.
var errLeads = fmt.Errorf("%w: this node is about to lead", eldest.ErrNoLeader)

// standby is the standby function of a round, while it runs.
type standby struct {
	positions latest.Cell[Position]
	cancel    context.CancelCauseFunc
	returned  chan struct{}
	// until is how long the function may take to return, once its context has ended.
	until time.Time
}

// standBy calls the standby function, if there is one.
func (r *round) standBy(ctx context.Context) {
	f := r.e.cfg.Standby
	if f == nil {
		return
	}
	s := &standby{returned: make(chan struct{})}
	ctx, s.cancel = context.WithCancelCause(ctx)
	r.standby = s
	go func() {
		defer close(s.returned)
		f(ctx, &Positions{election: r.e.cfg.Election, reader: s.positions.Reader()})
	}()
}

// standDown ends the context of the standby function, if there is one. err is why the candidacy has
// ended, and is returned; nil means that lead is to be called next. Then standDown waits for the
// function, for Config.Drain at most or until ctx ends.
//
// Invariant: it returns nil only if no standby function is running (G7).
func (r *round) standDown(ctx context.Context, err error) error {
	s := r.standby
	if s == nil {
		return err
	}
	cause := cmp.Or(err, errLeads)
	s.until = time.Now().Add(r.e.cfg.Drain)
	s.cancel(cause)
	s.positions.Close(cause)
	if err != nil {
		return err
	}
	r.e.publish(unknown(r.e.failed("follow", cause)), r.session.Err)
	patience, cancel := context.WithDeadlineCause(ctx, s.until, eldest.ErrStuck)
	defer cancel()
	return r.e.failed("standby", retry.Wait(patience, s.returned))
}

// afterStandBy waits for a standby function whose context has ended, so that no other round begins
// while it runs. It returns why the round ended.
func (r *round) afterStandBy(ctx context.Context, why error) error {
	if s := r.standby; s != nil {
		if stuck := r.outlast(ctx, "standby", s.until, s.returned, func(error) {}); stuck != nil {
			return r.e.failed("standby", fmt.Errorf("%w: waited %v for the standby function: %w", eldest.ErrStuck, r.e.cfg.Drain, why))
		}
	}
	return why
}
