package transcript

import (
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// Event is the kind of an entry that is an event, received by a watch. The other kinds are those of
// messages.
const Event wiretap.Kind = "event"

// Entry is one line of a transcript.
type Entry struct {
	// At is the time since the start; Took is the time between a request and its answer. Both are
	// zero in the normal form.
	At, Took time.Duration
	// Lane is the client; "" only for a note about no client. Connection and Call are its
	// connection and the call, numbered from 1; zero in the normal form.
	Lane             string
	Connection, Call int
	Kind             wiretap.Kind
	// Verb is the method, without its service; Parts are the rest of the text.
	Verb  string
	Parts []string
	// Gained are candidates' keys that exist in etcd from here on, as Lane's; Gone are keys that no
	// longer exist. Both are set only in the normal form, with names as in the text.
	Gained, Gone []string
	// Lost means that it did not arrive, because the lane was partitioned.
	Lost bool
}

// Text returns the entry as text, on one line.
func (e Entry) Text() string {
	var b strings.Builder
	b.WriteString(e.Verb)
	for i, part := range e.Parts {
		switch {
		case b.Len() == 0:
		case i == 0, strings.HasPrefix(part, "Then "), strings.HasPrefix(part, "Else "):
			b.WriteString(" ")
		default:
			b.WriteString("; ")
		}
		b.WriteString(part)
	}
	if e.Lost {
		b.WriteString(" (lost)")
	}
	return b.String()
}

// Arrow points from the lane to etcd or back.
func (e Entry) Arrow() string {
	switch e.Kind {
	case wiretap.Request:
		return "→"
	case wiretap.Note:
		return "·"
	default:
		return "←"
	}
}
