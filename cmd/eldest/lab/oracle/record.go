package oracle

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// line is one line of a stored history. Exactly one of its members is there.
type line struct {
	About  *About  `json:"about,omitempty"`
	Event  *Event  `json:"event,omitempty"`
	Change *Change `json:"change,omitempty"`
}

// Recorder writes what one process tells, a line of JSON each. A line is one call
// of Write: in a file opened for appending, what was told before a kill is there
// afterwards. It is safe for concurrent use.
type Recorder struct {
	now func() time.Duration

	mu sync.Mutex
	w  io.Writer
}

// NewRecorder makes a recorder that writes to w and asks now for the instant of an
// event that has none. now must be a clock that all processes of the run share.
func NewRecorder(w io.Writer, now func() time.Duration) *Recorder {
	return &Recorder{now: now, w: w}
}

// About writes what the history is about. One process of a run does so.
func (r *Recorder) About(a About) error { return r.write(line{About: &a}) }

// Add writes e. Without an instant it gets that of this call, in the order of the
// lines. It returns after w did; an error is w's, and whoever cannot tell what it
// does must not do it.
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
