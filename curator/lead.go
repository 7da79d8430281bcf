package curator

import (
	"context"
	"errors"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/elector"
)

// lead is the lead function of this node: it serves a tenure until the tenure is lost, or there is
// a reason to give it up. It returns when nothing of the tenure is running any more, because then
// the successor may begin.
func (c *Curator) lead(ctx context.Context, l *elector.Leadership) error {
	t := newTenure(ctx, l.Token(), func() bool { return l.Holds(0) })
	late := make(chan error, 1)
	registered := newServices(c.local.names, func(err error) {
		select {
		case late <- err:
		default: // one is enough
		}
	})
	err := c.cfg.Services(t.Context(), l, registered)
	if err == nil {
		t.Service, err = registered.close()
	}
	if err == nil {
		err = c.router.Lead(t)
	}
	if err != nil {
		t.Cancel(err)
		c.cfg.Logger.Error("services cannot be served", "election", l.Election(), "node", c.cfg.Elector.NodeID, "token", int64(l.Token()), "error", err)
		return fmt.Errorf("services: %w", err)
	}
	background, result := make(chan struct{}), errors.New("its goroutine ended with runtime.Goexit")
	if c.cfg.Background != nil {
		go func() {
			defer close(background)
			result = c.cfg.Background(t.Context(), l)
		}()
	}
	select {
	case <-ctx.Done():
	case <-background:
		err = gaveUp(result)
	case err = <-late:
	}
	// If the node resigns, it still leads for a while: first it takes no new calls, then it waits
	// for those that run, and then it ends the tenure.
	cause := err
	if cause == nil {
		cause = context.Cause(ctx)
	}
	c.router.Leave(t, cause)
	if err != nil {
		t.Drain(c.halted, c.cfg.Drain)
	}
	t.Finish(cause)
	if c.cfg.Background != nil {
		<-background
	}
	return err
}

// errPastDeadline is the cause if the clock ends a tenure before the timer has fired.
var errPastDeadline = fmt.Errorf("%w: the deadline has passed", eldest.ErrSessionLost)

// newTenure makes a tenure without methods. holds reads the clock and reports whether the tenure is
// certain at this moment.
func newTenure(ctx context.Context, token eldest.Token, holds func() bool) *tenure {
	return &tenure{Token: token, Calls: routing.NewCalls(ctx, func() error {
		if !holds() {
			return errPastDeadline
		}
		return nil
	})}
}

// gaveUp is the error of a tenure whose background function returned err.
func gaveUp(err error) error {
	if err == nil {
		return fmt.Errorf("%w: Config.Background returned", eldest.ErrResigned)
	}
	return fmt.Errorf("%w: Config.Background returned: %w", eldest.ErrResigned, err)
}
