package transcript

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
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
	text := e.Verb
	if len(e.Parts) > 0 {
		text += " " + joined(e.Parts)
	}
	return text + e.lost()
}

func (e Entry) lost() string {
	if e.Lost {
		return " (lost)"
	}
	return ""
}

// joined returns the parts of a text on one line.
func joined(parts []string) string {
	var b strings.Builder
	for i, part := range parts {
		switch {
		case i == 0:
		case isBranch(part):
			b.WriteString(" ")
		default:
			b.WriteString("; ")
		}
		b.WriteString(part)
	}
	return b.String()
}

// isBranch reports whether a part begins one of the two branches of a transaction.
func isBranch(part string) bool {
	return strings.HasPrefix(part, "Then ") || strings.HasPrefix(part, "Else ")
}

// Arrow points from the lane to etcd or back.
func (e Entry) Arrow() string {
	switch e.Kind {
	case wiretap.Request:
		return "→"
	case wiretap.Note:
		return "·"
	}
	return "←"
}

// Line formats an entry of a live transcript: the time in seconds, the lane, the number of the call,
// and the text; at the end how long the answer took.
func (e Entry) Line() string {
	call, took := "", ""
	if e.Call > 0 {
		call = fmt.Sprintf("#%d", e.Call)
	}
	if e.Took > 0 {
		took = fmt.Sprintf("  (%.3f ms)", milliseconds(e.Took))
	}
	return fmt.Sprintf("%10.6f  %-10s %-5s %s %s%s", e.At.Seconds(), plain.Line(e.Lane), call, e.Arrow(), e.Text(), took)
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// lineWidth is how long a line of a normal form may be, in characters, if it can be broken.
const lineWidth = 100

// Print writes the entries of a normal form: the lane, the direction, and the text. An entry that is
// too long for one line continues below, indented. The only error is the writer's.
func Print(out io.Writer, entries []Entry) error {
	width := 0
	for _, e := range entries {
		width = max(width, utf8.RuneCountInString(plain.Line(e.Lane)))
	}
	var b strings.Builder
	for _, e := range entries {
		start := fmt.Sprintf("%-*s %s ", width, plain.Line(e.Lane), e.Arrow())
		line := start + e.Text()
		if utf8.RuneCountInString(line) > lineWidth && len(e.Parts) > 1 {
			line = e.broken(start)
		}
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// broken returns the text with each part on its own line. The operations of a transaction are below
// the first one of their branch.
func (e Entry) broken(start string) string {
	start += e.Verb + " "
	indent := "\n" + strings.Repeat(" ", utf8.RuneCountInString(start))
	lines, inBranch := start, false
	for i, part := range e.Parts {
		if i > 0 {
			lines += indent
		}
		if isBranch(part) {
			inBranch = true
		} else if inBranch {
			lines += "     "
		}
		lines += part
	}
	return lines + e.lost()
}
