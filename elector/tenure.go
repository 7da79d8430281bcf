package elector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/eldest-io/eldest"
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
	running := true
	select {
	case <-returned:
		running = false
		cause = r.e.failed("lead", gaveUp(result))
	case <-l.Done():
	case <-ctx.Done():
		cause = r.e.failed("lead", context.Cause(ctx))
	}
	if lost := l.Err(); lost != nil {
		cause = lost
	}
	end(cause)
	r.e.publish(unknown(cause), nil)
	r.lasted = time.Since(won)
	if running {
		if err := r.drain(ctx, l, returned); err != nil {
			return err
		}
		if result != nil && !errors.Is(result, context.Cause(during)) && !errors.Is(result, context.Canceled) {
			r.e.warn("lead function returned an error after its context had ended",
				"key", l.Key(), "token", int64(l.Token()), "error", result)
		}
	}
	return cause
}

// gaveUp returns the error of a tenure whose lead function returned.
func gaveUp(err error) error {
	if err == nil {
		return fmt.Errorf("%w: the lead function returned", eldest.ErrResigned)
	}
	return fmt.Errorf("%w: the lead function returned: %w", eldest.ErrResigned, err)
}

// drain waits for a lead function whose context has ended: for Config.Drain with the key in place,
// and after that, with the lease left to its deadline, until ctx ends. If the function returned in
// time, drain returns nil and has sent nothing to etcd.
func (r *round) drain(ctx context.Context, l *Leadership, returned <-chan struct{}) error {
	e := r.e
	patience := time.NewTimer(e.cfg.Drain)
	defer patience.Stop()
	select {
	case <-returned:
		return nil
	case <-patience.C:
	}
	e.log(func() {
		e.cfg.Logger.Error("lead function ignores its context", "election", e.cfg.Election, "node", e.cfg.NodeID,
			"key", l.Key(), "token", int64(l.Token()), "waited", e.cfg.Drain)
	})
	stuck := e.failed("lead", fmt.Errorf("%w: waited %v", eldest.ErrStuck, e.cfg.Drain))
	r.abandon(stuck)
	select {
	case <-returned:
	case <-ctx.Done():
		e.stuck = returned
	}
	return stuck
}
