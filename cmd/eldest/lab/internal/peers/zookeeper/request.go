package zookeeper

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// retryPause is how long a request that has failed for lack of a connection waits. The library reconnects by itself.
const retryPause = 10 * time.Millisecond

// refusals are the errors of requests that servers have answered. Any other error is one of the connection: the
// library also returns those of the operating system.
var refusals = []error{
	zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty, zk.ErrNoAuth, zk.ErrInvalidACL, zk.ErrAuthFailed,
	zk.ErrNoChildrenForEphemerals, zk.ErrAPIError, zk.ErrBadArguments, zk.ErrInvalidPath, zk.ErrInvalidFlags,
}

// refused reports whether a server has answered with an error.
func refused(err error) bool {
	for _, r := range refusals {
		if errors.Is(err, r) {
			return true
		}
	}
	return false
}

// call makes a request of the library, which has no context, and returns at the latest when ctx ends. abandoned is
// called with the result of a request that ends later, if it is not nil.
func call[T any](ctx context.Context, c *client, request func() (T, error), abandoned func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer)
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	begun := c.goes(func() {
		v, err := request()
		select {
		case answers <- answer{v, err}:
		case <-ctx.Done():
			if err == nil && abandoned != nil {
				abandoned(v)
			}
		}
	})
	if !begun {
		return none, errClosed
	}
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// retry makes a request until a server has answered it, or ctx ends. The request may be applied more than once.
func retry[T any](ctx context.Context, c *client, request func() (T, error)) (T, error) {
	for {
		v, err := call(ctx, c, request, nil)
		if err == nil || refused(err) || errors.Is(err, errClosed) {
			return v, err
		}
		if ended := pause(ctx, retryPause); ended != nil {
			return v, ended
		}
	}
}
