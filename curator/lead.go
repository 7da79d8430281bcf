package curator

import (
	"context"
	"errors"
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
)

// lead is the lead function of this node: it serves a tenure until the tenure is lost,
// or there is a reason to give it up. It returns when nothing of the tenure is running
// any more, because then the successor may begin.
func (c *Curator) lead(ctx context.Context, l *elector.Leadership) error {
	t := newTenure(ctx, l.Election(), l.Token(), func() bool { return l.Holds(0) })
	late := make(chan error, 1)
	registered := newServices(c.front.local.names, func(err error) {
		select {
		case late <- err:
		default: // one is enough
		}
	})
	err := c.cfg.Services(t.ctx, l, registered)
	if err == nil {
		t.methods, err = registered.close()
	}
	if err != nil {
		t.cancel(err)
		c.cfg.Logger.Error("services cannot be served", "election", l.Election(), "node", c.cfg.Elector.NodeID, "token", int64(l.Token()), "error", err)
		return fmt.Errorf("services: %w", err)
	}
	background, result := make(chan struct{}), errors.New("its goroutine was ended")
	if c.cfg.Background != nil {
		go func() {
			defer close(background)
			result = c.cfg.Background(t.ctx, l)
		}()
	}
	c.front.router.lead(t)
	select {
	case <-ctx.Done():
	case <-background:
		err = gaveUp(result)
	case err = <-late:
	}
	// Of one's own accord there is time: first nobody new, then those that are under way
	// while this node still leads, then the end.
	cause := err
	if cause == nil {
		cause = context.Cause(ctx)
	}
	c.front.router.leave(t, cause)
	if err != nil {
		t.settle(c.cfg.Grace)
	}
	t.finish(cause)
	if c.cfg.Background != nil {
		<-background
	}
	return err
}

// gaveUp says of a tenure that its background function returned.
func gaveUp(err error) error {
	if err == nil {
		return fmt.Errorf("%w: Config.Background returned", eldest.ErrResigned)
	}
	return fmt.Errorf("%w: Config.Background returned: %w", eldest.ErrResigned, err)
}
