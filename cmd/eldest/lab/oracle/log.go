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

// Add files e, with its instant, revision and number. Whatever a participant
// says after it crashed is dropped: the dead say nothing. It reports whether e
// was filed.
func (l *Log) Add(e Event) bool {
	return l.file(e, func(e *Event) { e.At = l.now() })
}

// Lasted files e, which began at an instant in the past and is over now.
func (l *Log) Lasted(begun time.Duration, e Event) bool {
	return l.file(e, func(e *Event) { e.At, e.Until = begun, l.now() })
}

func (l *Log) file(e Event, stamp func(*Event)) bool {
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
	stamp(&e)
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
