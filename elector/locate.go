package elector

import (
	"context"
	"sync"
	"time"

	"github.com/eldest-io/eldest/internal/retry"
)

// locator publishes the statuses of a node that does not lead. With Config.AddressOf it adds the
// address of the leader, on a goroutine of its own for each leader, so that a slow function delays
// neither the next status nor the win.
//
// Invariant: an address is published only with the leader that it was found for, and only while
// that leader's status is the last one that was published. After stop nothing is published.
type locator struct {
	r    *round
	over func() error

	mu sync.Mutex
	// ahead is the number of candidates ahead of this node.
	ahead int
	// leader is the last leader, as etcd has it, and address what was found for it.
	leader  Leader
	address string
	// shown: the status of that leader is the last one that was published.
	shown bool
	end   context.CancelFunc // ends the search
}

// located is how often the address of a leader is asked for again, to follow changes of which etcd
// receives nothing.
const located = 5 * time.Second

func (r *round) locator(over func() error) *locator {
	return &locator{r: r, over: over, end: func() {}}
}

// publish publishes a status, with the number of candidates ahead of this node.
func (l *locator) publish(ctx context.Context, s Status, ahead int) {
	leader, follows := s.Leader()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ahead = ahead
	l.shown = follows && l.r.e.cfg.AddressOf != nil
	if !l.shown {
		l.r.publish(s, l.over, ahead)
		return
	}
	if leader != l.leader {
		if leader.Token != l.leader.Token { // otherwise its value has changed, and the last address may still be good
			l.address = ""
		}
		l.leader = leader
		l.end()
		ctx, l.end = context.WithCancel(ctx)
		l.r.closing.Go(func() { l.search(ctx, leader) })
	}
	l.show()
}

// show publishes the leader with the address that was found. The caller holds mu.
func (l *locator) show() {
	at := l.leader
	at.Address = l.address
	l.r.publish(follows(at), l.over, l.ahead)
}

// stop ends the search, without waiting for the user's function.
func (l *locator) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = false
	l.end()
}

// search calls Config.AddressOf for one leader until ctx ends.
func (l *locator) search(ctx context.Context, leader Leader) {
	failing := false // the last call returned an error
	for attempts := 0; ; {
		address, err := l.r.e.cfg.AddressOf(ctx, leader)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			l.found(ctx, address)
		case !failing:
			l.r.e.log.warn("the address of the leader was not found", "leader", leader.NodeID, "token", int64(leader.Token), "error", err)
		}
		failing = err != nil
		wait := located
		if failing || address == "" {
			wait = pause(attempts)
			attempts++
		} else {
			attempts = 0
		}
		if retry.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// found publishes an address that is new, unless the search has ended meanwhile.
func (l *locator) found(ctx context.Context, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// ctx is checked with mu, which publish and stop hold when they end the search.
	if ctx.Err() != nil || address == l.address {
		return
	}
	l.address = address
	if l.shown {
		l.show()
	}
}
