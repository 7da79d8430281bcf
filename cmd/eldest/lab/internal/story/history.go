package story

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Instant is a fact that knows when it happened, on this machine's wall clock.
type Instant interface{ When() time.Time }

// History is all facts of a play, in the order in which this process learned of them.
// The zero value is ready; safe for concurrent use.
type History[F Instant] struct {
	mu      sync.Mutex
	facts   []F
	changed chan struct{} // closed and replaced by each Add
}

// Add appends a fact and wakes whoever awaits one. It never blocks for long.
func (h *History[F]) Add(f F) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.facts = append(h.facts, f)
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// Facts returns a copy, in the order in which things happened.
func (h *History[F]) Facts() []F {
	h.mu.Lock()
	defer h.mu.Unlock()
	return InOrder(h.facts)
}

// Await blocks until cond holds for the facts so far, or ctx ends: then it returns
// its cause. cond must not keep or change its argument.
func (h *History[F]) Await(ctx context.Context, cond func([]F) bool) error {
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

// InOrder sorts a copy by time. Facts of the same instant keep their order.
func InOrder[F Instant](facts []F) []F {
	sorted := slices.Clone(facts)
	slices.SortStableFunc(sorted, func(a, b F) int { return a.When().Compare(b.When()) })
	return sorted
}
