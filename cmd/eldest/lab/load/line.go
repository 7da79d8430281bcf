package load

import (
	"context"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
)

// line is the newest tenure of the candidates, for those who wait for one.
type line struct {
	mu     sync.Mutex
	newest eldest.Token
	won    time.Time // when the newest was
	over   bool      // the newest has ended
	// next is closed, and replaced, at each win.
	next chan struct{}
}

func newLine() *line { return &line{next: make(chan struct{})} }

func (l *line) begins(ev election.WonEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ev.Token > l.newest {
		l.newest, l.won, l.over = ev.Token, ev.At, false
	}
	close(l.next)
	l.next = make(chan struct{})
}

func (l *line) ends(token eldest.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = l.over || token == l.newest
}

// latest returns the newest token, when it was won, and a channel that is closed at the
// next win.
func (l *line) latest() (eldest.Token, time.Time, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest, l.won, l.next
}

// leading waits until somebody leads, and returns the token.
func (l *line) leading(ctx context.Context) (eldest.Token, error) {
	for {
		l.mu.Lock()
		token, leads, next := l.newest, l.newest > 0 && !l.over, l.next
		l.mu.Unlock()
		if leads {
			return token, nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
