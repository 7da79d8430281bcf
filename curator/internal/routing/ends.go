package routing

import (
	"context"
	"sync"
)

// Ends wakes those that wait until something has ended. The zero value is ready. A mutex of its
// owner's guards it.
type Ends struct{ next chan struct{} }

// Tell wakes all. The caller holds the mutex.
func (e *Ends) Tell() {
	if e.next != nil {
		close(e.next)
		e.next = nil
	}
}

// Wait blocks until done, which is called with mu held, says so (true), or ctx ends (false).
func (e *Ends) Wait(ctx context.Context, mu sync.Locker, done func() bool) bool {
	for {
		mu.Lock()
		if done() {
			mu.Unlock()
			return true
		}
		if e.next == nil {
			e.next = make(chan struct{})
		}
		next := e.next
		mu.Unlock()
		select {
		case <-next:
		case <-ctx.Done():
			return false
		}
	}
}
