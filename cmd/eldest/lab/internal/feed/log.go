package feed

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Capacity is how many events a log keeps, and mostBytes how many bytes they have at most, about.
const (
	Capacity  = 50_000
	mostBytes = 64 << 20
)

// Log keeps the newest events. It is safe for concurrent use; made by NewLog.
type Log struct {
	begin time.Time

	mu      sync.Mutex
	events  []Event // Seq of the first is first
	first   int64
	changed chan struct{}    // closed by the next Add; nil if no call of After waits
	bytes   int              // of events, about
	latest  map[string]Event // states that were dropped from events, by what they are the state of
	// forgotten has, by the same names, the events up to which states are not kept in latest.
	forgotten map[string]int64
	reading   int       // calls of After that have not returned
	read      time.Time // when the newest of the others returned
}

// NewLog returns an empty log, whose clock begins now.
func NewLog() *Log {
	return &Log{begin: time.Now(), first: 1, latest: map[string]Event{}, forgotten: map[string]int64{}}
}

// NowMS returns the time since the beginning.
func (l *Log) NowMS() float64 { return Milliseconds(time.Since(l.begin)) }

// Milliseconds returns a time as it is in events and actions.
func Milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

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
	l.bytes += size(e)
	// A tenth at once, so that most calls copy nothing.
	switch {
	case len(l.events) > Capacity:
		l.drop(func(dropped int) bool { return dropped < Capacity/10 })
	case l.bytes > mostBytes:
		l.drop(func(int) bool { return l.bytes > mostBytes-mostBytes/10 })
	}
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return e
}

// drop drops the oldest events while more says so, but never the newest one. The caller holds mu.
func (l *Log) drop(more func(dropped int) bool) {
	n := 0
	for ; n < len(l.events)-1 && more(n); n++ {
		old := l.events[n]
		l.bytes -= size(old)
		switch name := stateOf(old); {
		case name == "" || old.Seq <= l.forgotten[name]:
		case old.Type == Participant && old.Participant.Life == Left:
			delete(l.latest, name)
		default:
			l.latest[name] = old
		}
	}
	l.events = slices.Clone(l.events[n:])
	l.first += int64(n)
	maps.DeleteFunc(l.forgotten, func(_ string, seq int64) bool { return seq < l.first })
}

// ForgetQueue drops the state of the queue of an election that is not shown any more: a reader that
// is too slow does not get it.
func (l *Log) ForgetQueue(election string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := stateOf(Event{Type: Queue, Queue: &QueueState{Election: election}})
	delete(l.latest, name)
	if len(l.events) > 0 {
		l.forgotten[name] = l.first + int64(len(l.events)) - 1
	}
}

// perPart is about how many bytes an event, or a part of it, has in JSON besides its texts.
const perPart = 200

// size is about how many bytes an event has in JSON.
func size(e Event) int {
	n := perPart + len(e.Who) + len(e.Error)
	if r := e.Report; r != nil {
		n += perPart + len(r.Key) + len(r.Text)
	}
	if m := e.Message; m != nil {
		n += perPart + len(m.Text) + len(m.Body)
		for _, line := range m.Lines {
			n += len(line)
		}
	}
	if q := e.Queue; q != nil {
		n += len(q.Election)
		for _, p := range q.Places {
			n += perPart + len(p.Key) + len(p.Who) + len(p.Value)
		}
	}
	for _, election := range e.Elections {
		n += perPart + len(election.Name) + len(election.Leader)
	}
	if o := e.Observer; o != nil {
		n += len(o.Key) + len(o.Value) + len(o.Why)
	}
	if a := e.Action; a != nil {
		n += len(a.Do) + len(a.On) + len(a.Rule) + len(a.Match) + len(a.Election) + len(a.Key)
		for _, b := range a.Breakpoints {
			n += len(b)
		}
	}
	return n + perPart*len(e.Members)
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
// its old number, the oldest of these first. It returns ctx's cause if ctx ends first.
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
				out = slices.SortedFunc(maps.Values(l.latest), func(a, b Event) int { return cmp.Compare(a.Seq, b.Seq) })
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
