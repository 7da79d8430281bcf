package loop

import "sync"

// tasks are goroutines that can be waited for.
type tasks struct {
	done chan struct{} // closed after last, when none runs any more

	// mu is taken after all others.
	mu      sync.Mutex
	running int
	over    bool
}

func newTasks() tasks { return tasks{done: make(chan struct{})} }

// run runs f on a goroutine; after last it does nothing. It does not block.
func (t *tasks) run(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.running++
	go func() {
		f()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.running--
		t.settle()
	}()
}

// last notes that no other goroutine begins, once.
func (t *tasks) last() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.settle()
}

func (t *tasks) settle() {
	if t.over && t.running == 0 {
		close(t.done)
	}
}
