package oracle

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// ErrMalformed is wrapped by the errors of [Load] and [Recorder.Add] about anything that is not a
// line of a history.
var ErrMalformed = errors.New("malformed history")

// line is one line of a stored history. Exactly one of its members is set.
type line struct {
	About  *About  `json:"about,omitempty"`
	Event  *Event  `json:"event,omitempty"`
	Change *Change `json:"change,omitempty"`
}

// Recorder writes the reports of one process, a line of JSON each. A line is one call of Write: in
// a file opened for appending, everything that was recorded before a kill is kept. It is safe for
// concurrent use.
type Recorder struct {
	now func() time.Duration

	mu sync.Mutex
	w  io.Writer
}

// NewRecorder makes a recorder that writes to w and calls now for the instant of an event that has
// none. now must be a clock that all processes of the run share.
func NewRecorder(w io.Writer, now func() time.Duration) *Recorder { return &Recorder{now: now, w: w} }

// About writes the configuration of the run. One process of a run does so.
func (r *Recorder) About(a About) error { return r.write(line{About: &a}) }

// Add writes e. If e has no instant it gets that of this call, in the order of the lines. It
// returns after w did; an error is w's, and a process that cannot record an action must not do it.
func (r *Recorder) Add(e Event) error {
	if !kinds[e.Kind] {
		return fmt.Errorf("%w: kind %q", ErrMalformed, e.Kind)
	}
	return r.write(line{Event: &e})
}

// Change writes a change of the store.
func (r *Recorder) Change(c Change) error { return r.write(line{Change: &c}) }

func (r *Recorder) write(l line) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Event != nil && l.Event.At == 0 && r.now != nil {
		l.Event.At = r.now()
	}
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = r.w.Write(append(b, '\n'))
	return err
}

// Store writes the history as [Load] reads it.
func (h *History) Store(w io.Writer) error {
	out := bufio.NewWriter(w)
	r := NewRecorder(out, nil) // every event has its instant, 0 included
	err := r.About(h.About)
	for _, e := range h.Events {
		err = cmp.Or(err, r.Add(e))
	}
	for _, c := range h.Changes {
		err = cmp.Or(err, r.Change(c))
	}
	return errors.Join(err, out.Flush())
}

// Load reads what the processes of one run have recorded and merges it: events by instant, those of
// one process and instant in its own order; changes by revision. If a file does not end in a
// newline, its last line is ignored: its writer was killed in the middle of it, and did not
// continue. Anything else that cannot be parsed is an error: a checker must not be given an
// incomplete history.
func Load(files ...io.Reader) (*History, error) {
	h := &History{}
	about := 0
	for i, f := range files {
		in := bufio.NewReader(f)
		for n := 1; ; n++ {
			b, err := in.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				break
			}
			var l line
			if err == nil {
				l, err = parse(b)
			}
			if err != nil {
				return nil, fmt.Errorf("file %d, line %d: %w", i+1, n, err)
			}
			switch {
			case l.About != nil:
				h.About = *l.About
				about++
			case l.Event != nil:
				h.Events = append(h.Events, *l.Event)
			default:
				h.Changes = append(h.Changes, *l.Change)
			}
		}
	}
	if about != 1 {
		return nil, fmt.Errorf("%w: %d lines have the member about, want 1", ErrMalformed, about)
	}
	slices.SortStableFunc(h.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(h.Changes, func(a, b Change) int { return cmp.Compare(a.Rev, b.Rev) })
	for i := range h.Events {
		h.Events[i].Seq = i + 1
	}
	return h, nil
}

func parse(b []byte) (line, error) {
	var l line
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return l, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	members := 0
	for _, there := range []bool{l.About != nil, l.Event != nil, l.Change != nil} {
		if there {
			members++
		}
	}
	_, end := d.Token()
	switch {
	case members != 1 || !errors.Is(end, io.EOF):
		return l, fmt.Errorf("%w: want exactly one of about, event and change", ErrMalformed)
	case l.Event != nil && (!kinds[l.Event.Kind] || l.Event.At < 0):
		return l, fmt.Errorf("%w: kind %q at %v", ErrMalformed, l.Event.Kind, l.Event.At)
	}
	return l, nil
}

// Keep writes a history for inspection to a directory, which must exist: history.jsonl for programs
// ([Load] reads it), history.txt for people, which ends with found, and register.html, a picture of
// the operations that Linear checks. Files that were written before an error stay.
func (h *History) Keep(dir, found string) error {
	file, err := os.Create(filepath.Join(dir, "history.jsonl"))
	if err != nil {
		return err
	}
	if err := errors.Join(h.Store(file), file.Close()); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "history.txt"), []byte(h.String()+found), 0o644); err != nil {
		return err
	}
	return h.Picture(filepath.Join(dir, "register.html"))
}

// Log collects events in memory. It is safe for concurrent use; the order of its entries
// is the order of the calls, which decides between equal instants.
type Log struct {
	now func() time.Duration
	rev func() int64

	mu     sync.Mutex
	events []Event
	dead   map[string]bool
}

// NewLog makes a log that calls now for the instant and rev for the revision of the store at each
// entry.
func NewLog(now func() time.Duration, rev func() int64) *Log {
	return &Log{now: now, rev: rev, dead: map[string]bool{}}
}

// Add records e, with its revision and number and, if it has none, its instant. Reports of a
// participant after its crash are dropped. It reports whether e was recorded.
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

// Events returns what was recorded so far.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// Dead reports whether the participant crashed.
func (l *Log) Dead(who string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead[who]
}
