package rig

import (
	"context"
	"sync/atomic"
)

// Loss tells the server's side to do the host's next matching request and then
// lose the reply: the client cannot know that it was done.
type Loss struct {
	// Match picks the request by its full method and its message.
	Match func(method string, req any) bool
	// Reset breaks the host's connections instead of letting the client wait
	// for its own deadline.
	Reset bool

	// Struck, if set, is called when a reply was lost.
	Struck func()

	host *Host
	hits atomic.Int64
}

// Hits returns how many replies were lost: 0 or 1.
func (l *Loss) Hits() int { return int(l.hits.Load()) }

// Lose arms a loss for the next matching request of the host.
func (h *Host) Lose(l *Loss) {
	l.host = h
	h.mu.Lock()
	defer h.mu.Unlock()
	h.losses = append(h.losses, l)
}

// Forget disarms every loss and every trap that has not struck yet.
func (h *Host) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.losses, h.traps = nil, nil
}

// lossFor takes the first armed loss that matches.
func (h *Host) lossFor(method string, req any) *Loss {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, l := range h.losses {
		if l.Match(method, req) {
			h.losses = append(h.losses[:i:i], h.losses[i+1:]...)
			return l
		}
	}
	return nil
}

// strike loses the reply: it returns when the caller has given up.
func (l *Loss) strike(ctx context.Context) error {
	l.hit()
	<-ctx.Done()
	return ctx.Err()
}

// hit counts the loss and does what comes with it.
func (l *Loss) hit() {
	l.hits.Add(1)
	if l.Struck != nil {
		l.Struck()
	}
	if l.Reset {
		l.host.Reset()
	}
}
