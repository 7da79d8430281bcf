package latest

import (
	"context"
	"sync"
)

// Cell holds the newest value. The zero value is an empty cell; it must not be
// copied after first use. All methods are safe for concurrent use.
type Cell[T any] struct {
	mu      sync.Mutex
	value   T
	version uint64 // counts the values; 0: none yet
	err     error  // why no further value comes
	changed chan struct{}
}

// Set makes value the newest one and wakes whoever waits. It never blocks. After
// Close it does nothing.
func (c *Cell[T]) Set(value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.value = value
	c.version++
	c.wake()
}

// Close says that no further value comes, and why; err must not be nil. Readers
// still get the newest value, if they have not seen it, and then err. Only the
// first Close counts.
func (c *Cell[T]) Close(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		c.wake()
	}
}

func (c *Cell[T]) wake() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// Get returns the newest value; ok is false while there is none. It never blocks.
func (c *Cell[T]) Get() (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value, c.version > 0
}

// Err returns the error of Close, or nil before it.
func (c *Cell[T]) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Reader returns a reader that has seen nothing yet.
func (c *Cell[T]) Reader() *Reader[T] { return &Reader[T]{cell: c} }

// Reader reads a cell, each value at most once. It is for one goroutine at a
// time; many readers of one cell are independent.
type Reader[T any] struct {
	cell *Cell[T]
	seen uint64
}

// Next returns the newest value if this reader has not returned it yet, else
// blocks for a newer one. It ends with ctx (the error is its cause, nothing is
// lost, and the reader stays usable) or with the cell (the error of Close).
func (r *Reader[T]) Next(ctx context.Context) (T, error) {
	return r.NextWhere(ctx, func(T) bool { return true })
}

// NextWhere is Next for values that want accepts; others are skipped. want must
// be quick: it runs under the cell's lock.
func (r *Reader[T]) NextWhere(ctx context.Context, want func(T) bool) (T, error) {
	c := r.cell
	for {
		c.mu.Lock()
		if c.version > r.seen {
			r.seen = c.version
			if want(c.value) {
				defer c.mu.Unlock()
				return c.value, nil
			}
		}
		if c.err != nil {
			defer c.mu.Unlock()
			var none T
			return none, c.err
		}
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
	}
}
