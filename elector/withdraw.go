package elector

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
)

// Withdraw ends this node's candidacy for good, its tenure included, and leaves the node
// following the leader until Run ends: so that a process that is about to stop can pass on
// what still comes to it. What ends a tenure, ends it in the order that Run has. Withdraw blocks until the
// key was given up, or left to its lease; until Run has returned; or until ctx ends, and then
// it returns ctx's cause, while the node goes on to leave. Before Run it keeps the next one from standing.
// cause is the reason in the node's status; nil means eldest.ErrResigned. Calling
// Withdraw again waits for the same.
func (e *Elector) Withdraw(ctx context.Context, cause error) error {
	if ctx == nil {
		return e.failed("withdraw", invalid("the context is nil"))
	}
	if cause == nil {
		cause = fmt.Errorf("%w: it withdrew", eldest.ErrResigned)
	}
	e.withdraw(cause) // the first cause counts
	if !e.running.Load() {
		return nil
	}
	return e.failed("withdraw", retry.Wait(ctx, e.withdrawn))
}

// left notes that the node stands no more, if it has withdrawn: else it may stand again.
func (e *Elector) left() {
	if e.withdrawing.Err() != nil {
		e.leave.Do(func() { close(e.withdrawn) })
	}
}

// standing returns the context under which a node stands: ctx, ended by Withdraw as well.
func (e *Elector) standing(ctx context.Context) (context.Context, context.CancelFunc) {
	standing, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.withdrawing, func() { cancel(context.Cause(e.withdrawing)) })
	return standing, func() { stop(); cancel(nil) }
}

// spectate follows the leader until ctx ends, without a place in the queue.
func (e *Elector) spectate(ctx context.Context) {
	e.left()
	for attempt := 0; ctx.Err() == nil; attempt++ {
		clients, err := e.cfg.Source(ctx)
		if err == nil {
			r := &round{e: e, clients: clients}
			var stop func()
			if stop, err = r.follow(ctx); err == nil {
				<-ctx.Done()
				stop()
				r.closing.Wait()
				return
			}
		}
		e.publish(unknown(e.failed("follow", err)), nil)
		_ = retry.Sleep(ctx, e.cfg.Backoff(attempt))
	}
}
