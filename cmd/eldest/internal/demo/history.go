package demo

import (
	"context"
	"slices"
	"sync"
)

// History is all facts, in the order in which this process learned of them. The
// zero value is ready; safe for concurrent use.
type History struct {
	mu      sync.Mutex
	facts   []Fact
	changed chan struct{} // closed and replaced by each Add
}

// Add appends a fact and wakes whoever awaits one. It never blocks for long.
func (h *History) Add(f Fact) {
	// Times of other processes carry no monotonic reading; without ours all of
	// them are compared on the same clock.
	f.At = f.At.Round(0)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.facts = append(h.facts, f)
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// Facts returns a copy, in the order in which things happened.
func (h *History) Facts() []Fact {
	h.mu.Lock()
	defer h.mu.Unlock()
	return inOrder(h.facts)
}

// Await blocks until cond holds for the facts so far, or ctx ends: then it returns
// its cause. cond must not keep or change its argument.
func (h *History) Await(ctx context.Context, cond func([]Fact) bool) error {
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

// inOrder sorts a copy by time. Facts of the same instant keep their order.
func inOrder(facts []Fact) []Fact {
	sorted := slices.Clone(facts)
	slices.SortStableFunc(sorted, func(a, b Fact) int { return a.At.Compare(b.At) })
	return sorted
}
