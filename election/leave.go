package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/eldest-io/eldest"
)

// Withdraw takes a waiting candidate out of the queue: its campaign, if there is one, returns an
// error that wraps eldest.ErrWithdrawn now, and the key is deleted. It blocks until the server has
// confirmed the deletion, the session has ended, ctx has ended, or etcd refuses; in the last two cases
// it returns ctx's or etcd's error, the key is removed in the background during the session, and
// Withdraw may be called again. Errors: eldest.ErrLeading (resign instead), eldest.ErrNotRegistered.
func (c *Candidate) Withdraw(ctx context.Context) error {
	if ctx == nil {
		return c.failed("withdraw", fmt.Errorf("%w: the context is nil", eldest.ErrInvalid))
	}
	return c.failed("withdraw", c.withdraw(ctx))
}

func (c *Candidate) withdraw(ctx context.Context) error {
	c.lock()
	switch {
	case c.won():
		c.unlock()
		return eldest.ErrLeading
	case !c.stands() && !errors.Is(c.cause, eldest.ErrWithdrawn):
		defer c.unlock()
		return c.notRegistered()
	}
	quit := c.quit(eldest.ErrWithdrawn)
	c.unlock()
	return quit(ctx)
}
