package feed

import (
	"context"
	"sync"
	"time"
)

// Capacity is how many events a log keeps.
const Capacity = 50_000

// Log keeps the newest events. It is safe for concurrent use; made by NewLog.
type Log struct {
	begin time.Time

	mu      sync.Mutex
	events  []Event // Seq of the first is first
	first   int64
	changed chan struct{}    // closed by the next Add; nil if no call of After waits
	latest  map[string]Event // states that were dropped from events, by what they are the state of
	reading int              // calls of After that have not returned
	read    time.Time        // when the newest of the others returned
}

// NewLog returns an empty log, whose clock begins now.
func NewLog() *Log { return &Log{begin: time.Now(), first: 1, latest: map[string]Event{}} }

// NowMS returns the time since the beginning.
func (l *Log) NowMS() float64 { return float64(time.Since(l.begin).Nanoseconds()) / 1e6 }

// Add appends an event, and numbers it. An event without a time gets the present one. It never
// blocks for long.
func (l *Log) Add(e Event) Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.AtMS == 0 {
		e.AtMS = l.NowMS()
	}
	e.Seq = l.first + int64(len(l.events))
	l.events = append(l.events, e)
	if len(l.events) > Capacity {
		// A tenth at once, so that most calls copy nothing.
		drop := Capacity / 10
		for _, old := range l.events[:drop] {
			if name := stateOf(old); name != "" {
				l.latest[name] = old
			}
		}
		l.events = append([]Event(nil), l.events[drop:]...)
		l.first += int64(drop)
	}
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return e
}

// stateOf names what an event is the state of; "" if it is not a state.
func stateOf(e Event) string {
	switch e.Type {
	case Participant, Observer:
		return string(e.Type) + " " + e.Who
	case Members, Elections:
		return string(e.Type)
	case Queue:
		return string(e.Type) + " " + e.Queue.Election
	default:
		return ""
	}
}

// After blocks until there are events with a greater Seq than the given one, and returns them, most
// at most. If some of them are not kept any more, the newest state of everything comes first, with
// its old number. It returns ctx's cause if ctx ends first.
func (l *Log) After(ctx context.Context, seq int64, most int) ([]Event, error) {
	l.reader(1)
	defer l.reader(-1)
	for {
		l.mu.Lock()
		end := l.first + int64(len(l.events)) - 1
		if seq > end { // of another log: an earlier run of the program
			seq = 0
		}
		if seq < end {
			var out []Event
			if seq+1 < l.first {
				for _, e := range l.latest {
					out = append(out, e)
				}
				seq = l.first - 1
			}
			from := l.events[seq+1-l.first:]
			out = append(out, from[:min(len(from), most)]...)
			l.mu.Unlock()
			return out, nil
		}
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// reader counts the calls of After.
func (l *Log) reader(by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reading += by
	l.read = time.Now()
}

// absence is how long a page may need to connect again before it counts as closed.
const absence = 5 * time.Second

// Read reports whether the log is read: a call of After waits, or one has returned in the last few
// seconds. What is only for a page that is open, such as asking for the time that leases have left,
// need not be done otherwise.
func (l *Log) Read() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reading > 0 || !l.read.IsZero() && time.Since(l.read) < absence
}
