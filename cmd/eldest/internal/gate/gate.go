package gate

import (
	"context"
	"sync"
)

// Gate is open or shut. The zero value is open. Its methods are safe for concurrent use.
type Gate struct {
	mu sync.Mutex
	// shut is nil while the gate is open, and is closed when it opens.
	shut chan struct{}
}

// Set shuts or opens the gate. When it returns, no caller that has not passed yet can pass, or all
// can.
func (g *Gate) Set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.shut == nil:
		g.shut = make(chan struct{})
	case !shut && g.shut != nil:
		close(g.shut)
		g.shut = nil
	}
}

// Shut returns a channel that is closed when the gate opens; nil while it is open.
func (g *Gate) Shut() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

// Pass blocks while the gate is shut. If ctx ends before that, it returns the cause.
func (g *Gate) Pass(ctx context.Context) error {
	for shut := g.Shut(); shut != nil; shut = g.Shut() {
		select {
		case <-shut:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
