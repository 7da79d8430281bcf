package latest

import (
	"context"
	"sync"
	"sync/atomic"
)

// Cell holds the newest value. The zero value is an empty cell; it must not be copied after first
// use. All methods are safe for concurrent use.
//
// Readers take no lock. All readers read as soon as a value is set; with a lock, the last of
// thousands would receive the value late.
type Cell[T any] struct {
	writing sync.Mutex
	now     atomic.Pointer[moment[T]] // nil before the first call of a method
}

// moment is the content of a cell between two changes.
//
// Invariant: a moment never changes, except that over is closed after the cell holds the next
// moment. In the last moment over is nil.
type moment[T any] struct {
	value   T
	version uint64 // counts the values; 0: none yet
	err     error  // why no further value comes
	over    chan struct{}
}

// Set makes value the newest one and wakes all waiting readers. It never blocks. After Close it
// does nothing.
func (c *Cell[T]) Set(value T) {
	c.change(func(next *moment[T]) {
		next.value = value
		next.version++
	})
}

// Update is Set of the value that edit returns for the newest one; no other value is set meanwhile.
// edit must not use the cell.
func (c *Cell[T]) Update(edit func(T) T) {
	c.change(func(next *moment[T]) {
		next.value = edit(next.value)
		next.version++
	})
}

// Close ends the cell with a reason; err must not be nil. No further value can be set. Each reader
// still gets the newest value, if it has not seen it, and then err. Only the first Close counts.
func (c *Cell[T]) Close(err error) {
	c.change(func(last *moment[T]) {
		last.err = err
		last.over = nil
	})
}

// change replaces the moment by an edited copy, unless it is the last one.
func (c *Cell[T]) change(edit func(next *moment[T])) {
	c.writing.Lock()
	defer c.writing.Unlock()
	old := c.moment()
	if old.err != nil {
		return
	}
	next := &moment[T]{value: old.value, version: old.version, over: make(chan struct{})}
	edit(next)
	c.now.Store(next)
	close(old.over)
}

// moment returns the present moment; the first call makes one.
func (c *Cell[T]) moment() *moment[T] {
	if m := c.now.Load(); m != nil {
		return m
	}
	c.now.CompareAndSwap(nil, &moment[T]{over: make(chan struct{})})
	return c.now.Load()
}

// Get returns the newest value; ok is false while there is none. It never blocks.
func (c *Cell[T]) Get() (value T, ok bool) {
	m := c.moment()
	return m.value, m.version > 0
}

// Err returns the error of Close, or nil before it.
func (c *Cell[T]) Err() error { return c.moment().err }

// Reader returns a reader that has seen nothing yet.
func (c *Cell[T]) Reader() *Reader[T] { return &Reader[T]{cell: c} }

// Reader reads each value of a cell at most once. It is for one goroutine at a time; many readers
// of one cell are independent.
type Reader[T any] struct {
	cell *Cell[T]
	seen uint64
}

// Next returns the newest value if this reader has not returned it yet, else blocks until there is
// a newer one. It ends with ctx (the error is its cause, no value is lost, and the reader stays
// usable) or with the cell (the error of Close).
func (r *Reader[T]) Next(ctx context.Context) (T, error) {
	return r.NextWhere(ctx, func(T) bool { return true })
}

// NextWhere is Next for values that want accepts; it skips other values. want is called without any
// lock, so it may take long, call the cell, and even panic.
func (r *Reader[T]) NextWhere(ctx context.Context, want func(T) bool) (T, error) {
	for {
		m := r.cell.moment()
		switch {
		case m.version > r.seen:
			r.seen = m.version
			if want(m.value) {
				return m.value, nil
			}
			continue // there may be a newer one by now
		case m.err != nil:
			var none T
			return none, m.err
		}
		select {
		case <-m.over:
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
	}
}
