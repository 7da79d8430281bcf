package oracle

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrMalformed is wrapped by the errors of [Load] and [Recorder.Add] about what is
// no line of a history.
var ErrMalformed = errors.New("malformed history")

// Load reads what the processes of one run have recorded and merges it: events by
// instant, those of one process and instant in its own order; changes by revision.
// Of a file that does not end in a newline the last line is not there: its writer
// was killed in the middle of it, and had not gone on. Everything else that is not
// understood is an error: a checker that is not shown an event looks for it in vain.
func Load(files ...io.Reader) (*History, error) {
	h := &History{}
	about := false
	for i, f := range files {
		err := eachLine(f, func(n int, b []byte) error {
			l, err := parse(b)
			switch {
			case err != nil:
			case l.About != nil && about:
				err = fmt.Errorf("%w: a second line says what it is about", ErrMalformed)
			case l.About != nil:
				h.About, about = *l.About, true
			case l.Event != nil:
				h.Events = append(h.Events, *l.Event)
			default:
				h.Changes = append(h.Changes, *l.Change)
			}
			if err != nil {
				return fmt.Errorf("file %d, line %d: %w", i+1, n, err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if !about {
		return nil, fmt.Errorf("%w: no line says what it is about", ErrMalformed)
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
	switch {
	case members != 1:
		return l, fmt.Errorf("%w: %d of about, event and change", ErrMalformed, members)
	case d.More():
		return l, fmt.Errorf("%w: more than one object", ErrMalformed)
	case l.Event != nil && !kinds[l.Event.Kind]:
		return l, fmt.Errorf("%w: kind %q", ErrMalformed, l.Event.Kind)
	case l.Event != nil && l.Event.At < 0:
		return l, fmt.Errorf("%w: %q before time", ErrMalformed, l.Event.Kind)
	}
	return l, nil
}

// eachLine calls f with each line that is ended by a newline.
func eachLine(r io.Reader, f func(n int, b []byte) error) error {
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		b, err := in.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := f(n, b); err != nil {
			return err
		}
	}
}

// Store writes the history as [Load] reads it.
func (h *History) Store(w io.Writer) error {
	out := bufio.NewWriter(w)
	r := NewRecorder(out, nil) // every event has its instant, 0 included
	if err := r.About(h.About); err != nil {
		return err
	}
	for _, e := range h.Events {
		if err := r.Add(e); err != nil {
			return err
		}
	}
	for _, c := range h.Changes {
		if err := r.Change(c); err != nil {
			return err
		}
	}
	return out.Flush()
}
