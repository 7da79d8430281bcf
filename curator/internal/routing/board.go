package routing

import (
	"context"
	"errors"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/latest"
)

// doubtful is how long this node's news may be behind that of the one who forwarded.
const doubtful = time.Second

// ErrPatience is the end of a wait that its own bound ended.
var ErrPatience = errors.New("waited long enough")

// Route says where calls go at a moment. It is immutable, and compared by identity.
type Route interface {
	comparable
	Decide(token eldest.Token) Decision
}

// Board shows the present route. It is ready after the first Set. Its methods may be called
// from many goroutines.
type Board[R Route] struct{ cell latest.Cell[R] }

// Set shows another route.
func (b *Board[R]) Set(to R) { b.cell.Set(to) }

// Now returns the present route.
func (b *Board[R]) Now() R {
	to, _ := b.cell.Get()
	return to
}

// Reader returns a reader of the routes that are shown from now on, and of the present one.
func (b *Board[R]) Reader() *latest.Reader[R] { return b.cell.Reader() }

// Next blocks until the route makes something else of a call than to wait: at most until
// the given time, and no longer than ctx lives. The error is ErrPatience or ctx's cause; the
// route is then the last one that was seen.
func (b *Board[R]) Next(ctx context.Context, token eldest.Token, until time.Time) (R, Decision, error) {
	to := b.Now()
	what := to.Decide(token)
	if what > Doubt {
		return to, what, nil
	}
	bounded, cancel := context.WithDeadlineCause(ctx, until, ErrPatience)
	defer cancel()
	doubting, stop := context.WithTimeoutCause(bounded, doubtful, ErrPatience)
	defer stop()
	for reader := b.cell.Reader(); ; {
		bound := bounded
		if what == Doubt {
			bound = doubting
		}
		newer, err := reader.Next(bound)
		if err != nil {
			return to, what, err
		}
		to, what = newer, newer.Decide(token)
		if what > Doubt {
			return to, what, nil
		}
	}
}

// Pause blocks until there is another route than the one that was seen, or for a while,
// or until ctx ends. It is false if the given time has come instead.
func (b *Board[R]) Pause(ctx context.Context, seen R, while time.Duration, until time.Time) bool {
	if time.Until(until) <= 0 {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, min(while, time.Until(until)))
	defer cancel()
	_, _ = b.cell.Reader().NextWhere(bounded, func(to R) bool { return to != seen })
	return ctx.Err() != nil || time.Until(until) > 0
}
