package peers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// crowd is a number of observers.
type crowd struct {
	n int

	mu      sync.Mutex
	told    map[string]*told
	err     error         // of the first observer that failed
	changed chan struct{} // closed when an observer has been told, or has failed
}

// told is how many observers have been told of a leader, and when the last of them was.
type told struct {
	by int
	at time.Time
}

// observe starts n observers.
func (p *host) observe(client peer.Observer, n int) {
	c := &crowd{n: n, told: map[string]*told{}, changed: make(chan struct{})}
	p.mu.Lock()
	p.crowd = c
	p.mu.Unlock()
	for range n {
		p.work.Go(func() {
			known := map[string]bool{}
			err := client.Observe(p.ctx, func(id string) {
				at := time.Now()
				if !known[id] {
					known[id] = true
					c.tell(id, at)
				}
			})
			if p.ctx.Err() == nil {
				c.fail(err)
			}
		})
	}
}

func (c *crowd) tell(id string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.told[id]
	if t == nil {
		t = &told{}
		c.told[id] = t
	}
	t.by++
	if at.After(t.at) {
		t.at = at
	}
	c.change()
}

func (c *crowd) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = fmt.Errorf("an observer has ended: %w", errors.Join(err))
		c.change()
	}
}

func (c *crowd) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// await returns when the last observer was told of a leader. It blocks until then, or ctx ends.
func (c *crowd) await(ctx context.Context, id string) (time.Time, error) {
	for {
		c.mu.Lock()
		t, err, changed := c.told[id], c.err, c.changed
		if t != nil && t.by == c.n {
			defer c.mu.Unlock()
			return t.at, nil
		}
		c.mu.Unlock()
		if err != nil {
			return time.Time{}, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

// join makes n candidates campaign, and returns how long it took until all of them were queued. It blocks
// until then. They wait until the participant ends.
func (p *host) join(client peer.Client, n int) (time.Duration, error) {
	queued, failed := make(chan struct{}, n), make(chan error, n)
	began := time.Now()
	for i := range n {
		p.work.Go(func() {
			if _, err := client.Campaign(p.ctx, fmt.Sprintf("%s-%d", p.id, i), func() { queued <- struct{}{} }); err != nil {
				failed <- err
			} else {
				p.event(evWon, nil)
				failed <- errors.New("a candidate leads, although another does")
			}
		})
	}
	for range n {
		select {
		case <-queued:
		case err := <-failed:
			return 0, fmt.Errorf("a candidate that joins: %w", err)
		case <-p.ctx.Done():
			return 0, context.Cause(p.ctx)
		}
	}
	return time.Since(began), nil
}

// memory makes n candidates wait, and returns how much heap and stack each takes.
func (p *host) memory(client peer.Client, n int) (int64, error) {
	before := inUse()
	if _, err := p.join(client, n); err != nil {
		return 0, err
	}
	pause(p.ctx, time.Second) // buffers of the joining are released
	return (inUse() - before) / int64(n), nil
}

// inUse returns how many bytes of heap and stacks are in use.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // pools are emptied in two steps
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
