package clockctx

import (
	"context"
	"time"
)

// Clock is a lease.Clock.
type Clock interface{ Now() time.Duration }

type key struct{}

// With returns a context that carries a clock.
func With(ctx context.Context, clock Clock) context.Context {
	return context.WithValue(ctx, key{}, clock)
}

// Of returns the clock that a context carries; nil if it carries none.
func Of(ctx context.Context) Clock {
	clock, _ := ctx.Value(key{}).(Clock)
	return clock
}
