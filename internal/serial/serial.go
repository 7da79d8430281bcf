package serial

import (
	"context"
	"sync"
)

// Limit is how many callbacks may wait behind one that blocks.
const Limit = 1024

// Queue runs callbacks in order. The zero value is ready; it must not be copied
// after first use. All methods are safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	waiting []func()
	// idle is nil while no goroutine runs; else it is closed when that goroutine
	// has run everything and ends.
	idle    chan struct{}
	dropped int
	over    bool // End was called
}

// Do queues f and returns at once. A nil f is ignored.
func (q *Queue) Do(f func()) {
	if f == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return
	}
	if len(q.waiting) >= Limit {
		q.dropped++
		return
	}
	q.waiting = append(q.waiting, f)
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.run(q.idle)
	}
}

// Call queues a call of a user's hook, if there is one.
func Call[E any](q *Queue, hook func(E), event E) {
	if hook != nil {
		q.Do(func() { hook(event) })
	}
}

func (q *Queue) run(idle chan struct{}) {
	empty := false
	defer func() {
		if !empty { // the callback has called runtime.Goexit; the others run all the same
			go q.run(idle)
		}
	}()
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.idle, q.waiting = nil, nil
			q.mu.Unlock()
			empty = true
			close(idle)
			return
		}
		f := q.waiting[0]
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		f()
	}
}

// End has Do ignore all further callbacks. Those that are queued still run.
func (q *Queue) End() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
}

// Wait blocks until all callbacks that are queued so far have run, or ctx ends; then it returns the
// context's error. In a callback it cannot succeed, because it waits for that callback, too.
func (q *Queue) Wait(ctx context.Context) error {
	q.mu.Lock()
	idle := q.idle
	q.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Dropped returns how many callbacks were dropped because Limit were waiting.
func (q *Queue) Dropped() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
