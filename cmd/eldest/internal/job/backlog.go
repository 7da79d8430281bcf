//go:build unix

package job

import "sync"

// backlog are the short orders that wait for their turn to be written, in order. Of the
// deadlines only the newest one is kept: an older one must not come after it. The zero
// value is empty.
type backlog struct {
	mu     sync.Mutex
	orders []order
}

func (b *backlog) add(o order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, waiting := range b.orders {
		if o.Deadline != nil && waiting.Deadline != nil {
			b.orders[i] = o
			return
		}
	}
	b.orders = append(b.orders, o)
}

func (b *backlog) some() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.orders) > 0
}

func (b *backlog) take() []order {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.orders
	b.orders = nil
	return all
}
