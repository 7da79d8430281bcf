package elector

import (
	"context"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
)

// Withdraw ends this node's candidacy for good, including its tenure, and leaves the node following
// the leader until Run ends, so that a process that is about to stop can forward the requests that
// it still receives. A tenure ends in the order that Run documents. Withdraw blocks until the key
// has been given up or left to its lease, until Run has returned, or until ctx ends; in the last
// case it returns ctx's cause, and the node still leaves. It also waits for Config.Standby, for
// Config.Drain at most. If Withdraw is called before Run, the next Run does not campaign. cause is
// the reason in the node's status; nil means eldest.ErrResigned. A second call waits in the same
// way.
func (e *Elector) Withdraw(ctx context.Context, cause error) error {
	if ctx == nil {
		return e.failed("withdraw", invalid("the context is nil"))
	}
	if cause == nil {
		cause = fmt.Errorf("%w: the node withdrew", eldest.ErrResigned)
	}
	e.withdraw(cause) // the first cause counts
	if !e.running.Load() {
		return nil
	}
	return e.failed("withdraw", retry.Wait(ctx, e.withdrawn))
}

// left records that the node, if it has withdrawn, is no longer a candidate; otherwise it may
// campaign again.
func (e *Elector) left() {
	if e.withdrawing.Err() != nil {
		e.leave.Do(func() { close(e.withdrawn) })
	}
}

// standing returns the context of the candidacy: ctx, which Withdraw ends as well.
func (e *Elector) standing(ctx context.Context) (context.Context, context.CancelFunc) {
	standing, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(context.Cause(e.withdrawing)) }
	if e.withdrawing.Err() != nil {
		end() // AfterFunc does it on another goroutine, after the first requests
	}
	stop := context.AfterFunc(e.withdrawing, end)
	return standing, func() { stop(); cancel(nil) }
}

// spectate follows the leader until ctx ends, without a position in the queue. It gets clients again
// when the observer has ended by itself: its client may have been replaced.
func (e *Elector) spectate(ctx context.Context) {
	e.left()
	for attempt := 0; ctx.Err() == nil; attempt++ {
		if err := e.look(ctx); err != nil {
			e.publish(unknown(e.failed("follow", err)), nil)
		}
		_ = retry.Sleep(ctx, e.cfg.Backoff(attempt))
	}
}

// look gets clients, and publishes the leader until ctx ends or the observer ends by itself, which it
// publishes as well.
func (e *Elector) look(ctx context.Context) error {
	clients, err := e.cfg.Source(ctx)
	if err != nil {
		return err
	}
	r := &round{e: e, clients: clients}
	observer, err := r.observer()
	if err != nil {
		return err
	}
	r.observe(ctx, observer)
	r.closing.Go(observer.Close)
	local, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.Leave)
	defer cancel()
	r.closed(local)
	return nil
}
