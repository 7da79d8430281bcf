package elector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/retry"
)

// tenure calls the lead function in the tenure that was just won, and returns why the tenure ended.
// Callers rely on the order: the function's context ends, then the status becomes unknown, then the
// function is waited for. Nothing is sent to etcd before that.
func (r *round) tenure(ctx context.Context, l *Leadership) error {
	won := time.Now()
	// The tenure or ctx may have ended before any notification: the process may have been stopped
	// since the proof.
	if over := cmp.Or(l.Err(), context.Cause(ctx)); over != nil {
		r.e.publish(unknown(over), nil)
		return over
	}
	r.e.publish(leads(l.Key(), l.Token(), r.session.TTL()), l.Err)
	during, end := context.WithCancelCause(l.WithValues(ctx))
	returned, result := make(chan struct{}), errors.New("its goroutine ended with runtime.Goexit")
	go func() {
		defer close(returned)
		result = r.lead(during, l)
	}()

	var cause error
	running, told := true, false // told: cause has the result
	select {
	case <-returned:
		running, told = false, true
		cause = r.e.failed("lead", gaveUp(result))
	case <-l.Done():
	case <-ctx.Done():
		cause = r.e.failed("lead", context.Cause(ctx))
	}
	if lost := l.Err(); lost != nil {
		cause, told = lost, false
		if !errors.Is(lost, eldest.ErrSuspended) && !errors.Is(lost, eldest.ErrDraining) {
			r.unregistered() // the key is gone, or cannot be written any more
		}
	}
	end(cause)
	r.e.publish(unknown(cause), nil)
	r.lasted += time.Since(won) // a suspended tenure goes on
	var stuck error
	if running {
		// The key stays in place until Config.Drain has passed; then the lease is left to its deadline.
		until := time.Now().Add(r.e.cfg.Drain)
		stuck = r.outlast(ctx, "lead", until, returned, r.abandon, "key", l.Key(), "token", int64(l.Token()))
	}
	if !told && r.e.stuck == nil {
		r.e.log.late(result, context.Cause(during), "key", l.Key(), "token", int64(l.Token()))
	}
	return cmp.Or(stuck, cause)
}

// gaveUp returns the error of a tenure whose lead function returned.
func gaveUp(err error) error {
	if err == nil {
		return fmt.Errorf("%w: the lead function returned", eldest.ErrResigned)
	}
	return fmt.Errorf("%w: the lead function returned: %w", eldest.ErrResigned, err)
}

// outlast waits for the lead or standby function (op) whose context has ended: until a time, and
// then, after late, until ctx ends. If the function returned in time, outlast returns nil and has
// sent nothing to etcd.
func (r *round) outlast(ctx context.Context, op string, until time.Time, returned <-chan struct{}, late func(stuck error), args ...any) error {
	e := r.e
	patience, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	if retry.Wait(patience, returned) == nil {
		return nil
	}
	e.log.line(slog.LevelError, op+" function ignores its context", append(args, "waited", e.cfg.Drain)...)
	stuck := e.failed(op, fmt.Errorf("%w: waited %v", eldest.ErrStuck, e.cfg.Drain))
	late(stuck)
	if retry.Wait(ctx, returned) != nil {
		e.stuck = returned
	}
	return stuck
}
