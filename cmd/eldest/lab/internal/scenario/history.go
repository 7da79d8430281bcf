package scenario

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// History is all facts of a run, in the order in which this process received them. The zero
// value is ready; safe for concurrent use.
type History[F any] struct {
	mu      sync.Mutex
	facts   []F
	changed chan struct{} // closed and replaced by each Add
}

// Add appends a fact and wakes everybody who awaits one. It never blocks for long.
func (h *History[F]) Add(f F) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.facts = append(h.facts, f)
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// Facts returns a copy.
func (h *History[F]) Facts() []F {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.facts)
}

// Await blocks until cond holds for the facts so far, or ctx ends, whose cause it returns.
// After the limit it returns an error that says what was awaited. cond must not keep or change
// its argument.
func (h *History[F]) Await(ctx context.Context, limit time.Duration, what string, cond func([]F) bool) error {
	overdue := fmt.Errorf("waited %v in vain for this: %s", limit, what)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, overdue)
	defer cancel()
	for {
		h.mu.Lock()
		if cond(h.facts) {
			h.mu.Unlock()
			return nil
		}
		if h.changed == nil {
			h.changed = make(chan struct{})
		}
		changed := h.changed
		h.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Last returns the newest fact that matches, in the order of their arrival, or nil.
func Last[F any](facts []F, match func(F) bool) *F {
	for i := len(facts) - 1; i >= 0; i-- {
		if match(facts[i]) {
			return &facts[i]
		}
	}
	return nil
}
