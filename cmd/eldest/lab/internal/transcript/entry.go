package transcript

import (
	"strings"
	"time"
)

// Kind says what an entry is.
type Kind string

// The kinds. A client asks and etcd answers; events are what a watch tells.
const (
	Ask    Kind = "request"
	Answer Kind = "answer"
	Event  Kind = "event"
	End    Kind = "end"
	Note   Kind = "note"
)

// Entry is one line of a transcript.
type Entry struct {
	// At is the time since the start; Took is that between a request and its answer. Both
	// are zero in the normal form.
	At, Took time.Duration
	// Lane is who asks and is answered; "" only of a note that is about nobody. Connection
	// and Call are his connection and the call, numbered from 1; zero in the normal form.
	Lane             string
	Connection, Call int
	Kind             Kind
	// Verb is the method, without its service; Parts say the rest, for people.
	Verb  string
	Parts []string
	// Gained and Gone are candidates' keys that are in etcd from here on, as Lane's, and that
	// are there no more; only in the normal form, where they are as the text has them.
	Gained, Gone []string
	// Lost says that it did not arrive, because the lane was cut off.
	Lost bool
}

// Text is the entry in words, on one line.
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
	case Ask:
		return "→"
	case Note:
		return "·"
	default:
		return "←"
	}
}
