package load

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
)

// line is the tenures of the candidates, as their hooks tell them. All times are
// readings of this process's one monotonic clock.
type line struct {
	book     *Book
	patience time.Duration

	mu      sync.Mutex
	tenures map[eldest.Token]*tenure
	// settled is the last tenure that was judged against its successor.
	settled *tenure
	newest  eldest.Token
	// won is closed, and replaced, at each win.
	won chan struct{}
}

type tenure struct {
	token      eldest.Token
	won, ended time.Time // ended is zero while it lasts
	cause      error
	// evicted says that somebody removed the key, and then two may lead for a moment
	// (G3).
	evicted bool
}

func newLine(book *Book, patience time.Duration) *line {
	return &line{book: book, patience: patience, tenures: map[eldest.Token]*tenure{}, won: make(chan struct{})}
}

func (l *line) begins(ev election.WonEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(ev.Token).won = ev.At
	l.book.count("tenures")
	l.newest = max(l.newest, ev.Token)
	close(l.won)
	l.won = make(chan struct{})
}

func (l *line) ends(ev election.EndedEvent) {
	if !ev.Led {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of(ev.Token)
	t.ended, t.cause = ev.At, ev.Cause
}

func (l *line) evicts(token eldest.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(token).evicted = true
}

func (l *line) of(token eldest.Token) *tenure {
	t := l.tenures[token]
	if t == nil {
		t = &tenure{token: token}
		l.tenures[token] = t
	}
	return t
}

// latest returns the newest token, and a channel that is closed at the next win.
func (l *line) latest() (eldest.Token, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest, l.won
}

// leading waits until somebody leads, and returns the token.
func (l *line) leading(ctx context.Context) (eldest.Token, error) {
	for {
		l.mu.Lock()
		t, won := l.tenures[l.newest], l.won
		leads := t != nil && t.ended.IsZero()
		l.mu.Unlock()
		if leads {
			return t.token, nil
		}
		select {
		case <-won:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// wonAt is when a tenure began, if it has not been settled yet.
func (l *line) wonAt(token eldest.Token) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenures[token]
	if t == nil {
		return time.Time{}, false
	}
	return t.won, !t.won.IsZero()
}

// lull is how old a tenure must be to be settled: by then the hooks of everybody before
// it have told.
const lull = 10 * time.Second

// settle judges the tenures that are old enough, one against the next, and forgets them.
// At the end of a run, all of them.
func (l *line) settle(all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	order := make([]*tenure, 0, len(l.tenures))
	for _, t := range l.tenures {
		order = append(order, t)
	}
	slices.SortFunc(order, func(a, b *tenure) int { return int(a.token - b.token) })
	old := func(t *tenure) bool { return !t.won.IsZero() && (all || time.Since(t.won) > lull) }
	for i, t := range order {
		over := !t.ended.IsZero()
		if !old(t) {
			return
		}
		if !over && i+1 < len(order) && old(order[i+1]) {
			l.book.violation("G1: tenure %d goes on although %d has been won", t.token, order[i+1].token)
			over = true
		}
		if !over && !all {
			return
		}
		l.judge(l.settled, t)
		delete(l.tenures, t.token)
		l.settled = t
	}
}

// judge holds a tenure against the one before it, nil if it is the first.
func (l *line) judge(before, t *tenure) {
	if before == nil || before.ended.IsZero() {
		return
	}
	without := t.won.Sub(before.ended)
	switch {
	case without < 0 && !before.evicted:
		l.book.violation("G1: tenure %d (ended by: %v) and %d overlap by %v", before.token, before.cause, t.token, -without)
	case without > l.patience:
		l.book.late("nobody led for %v after the end of %d (%v)", without, before.token, before.cause)
	}
	l.book.took("without a leader, after: "+kindOf(before.cause), max(0, without))
}
