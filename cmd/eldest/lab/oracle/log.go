package oracle

import (
	"sync"
	"time"
)

// Log collects events. It is safe for concurrent use; the order of its entries
// is the order of the calls, which decides between equal instants.
type Log struct {
	now func() time.Duration
	rev func() int64

	mu     sync.Mutex
	events []Event
	dead   map[string]bool
}

// NewLog makes a log that asks now for the instant and rev for the revision of
// the store at each entry.
func NewLog(now func() time.Duration, rev func() int64) *Log {
	return &Log{now: now, rev: rev, dead: map[string]bool{}}
}

// Add files e, with its revision and number and, if it has none, its instant. Whatever a
// participant says after it crashed is dropped: the dead say nothing. It reports whether e
// was filed.
func (l *Log) Add(e Event) bool {
	rev := l.rev()
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Who != "" && l.dead[e.Who] {
		return false
	}
	if e.Kind == Crashed {
		l.dead[e.Who] = true
	}
	e.Seq, e.Rev = len(l.events)+1, rev
	if e.At == 0 {
		e.At = l.now()
	}
	l.events = append(l.events, e)
	return true
}

// Events returns what was filed so far.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Event(nil), l.events...)
}

// Dead reports whether the participant crashed.
func (l *Log) Dead(who string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead[who]
}
