package curator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
)

// tenure is what this node serves while it leads: the methods that were registered for
// it, and the calls that run in it. Nothing of it outlives it.
//
// Invariant: a handler runs only between a begin that returned nil and its end, and no
// begin returns nil after finish.
type tenure struct {
	election string
	token    eldest.Token
	// ctx ends with the tenure; its cause says why.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// holds reads the clock: whether the tenure is certain at this moment.
	holds   func() bool
	methods map[string]*method

	mu      sync.Mutex
	running int          // calls between begin and end
	quick   int          // those of them that can be waited for: unary ones
	ends    routing.Ends // of calls
}

func newTenure(ctx context.Context, election string, token eldest.Token, holds func() bool) *tenure {
	t := &tenure{election: election, token: token, holds: holds}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	return t
}

// alive reports whether a handler may begin.
func (t *tenure) alive() bool { return t.over() == nil }

// over reads the clock and returns why no handler may begin any more, or nil.
func (t *tenure) over() error {
	switch lost := t.lost(); {
	case lost != nil:
		return lost
	case !t.holds():
		return errPastDeadline
	}
	return nil
}

// begin admits a call, or returns why it may not run any more (I9). Each begin that
// returned nil is followed by one end, when the handler has returned.
func (t *tenure) begin(unary bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.over(); err != nil {
		return err
	}
	t.running++
	if unary {
		t.quick++
	}
	return nil
}

// errPastDeadline is the end of a tenure of which no timer has told yet.
var errPastDeadline = fmt.Errorf("%w: the deadline has passed", eldest.ErrSessionLost)

func (t *tenure) end(unary bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if unary {
		t.quick--
	}
	t.ends.Tell()
}

// lost returns why the tenure ended, or nil.
func (t *tenure) lost() error { return context.Cause(t.ctx) }

// settle waits, in a tenure that goes on but admits nobody new any more, until the unary
// calls that are under way have returned: those that would otherwise learn nothing but
// that they were cancelled. It ends with the tenure or after limit. Streams are not
// waited for; they may go on for ever.
func (t *tenure) settle(limit time.Duration) {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	t.ends.Wait(ctx, &t.mu, func() bool { return t.quick == 0 })
}

// finish ends the tenure and waits until no handler runs.
func (t *tenure) finish(cause error) {
	t.cancel(cause) // which begin sees, under the lock that Wait takes next
	t.ends.Wait(context.Background(), &t.mu, func() bool { return t.running == 0 })
}
