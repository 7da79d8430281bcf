package transcript

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// Line formats an entry of a live transcript: the time in seconds, the lane, the number of the
// call, and the text; at the end how long the answer took.
func (e Entry) Line() string {
	text := fmt.Sprintf("%10.6f  %-10s", e.At.Seconds(), plain.Line(e.Lane))
	if e.Kind == wiretap.Note {
		return text + "        · " + e.Text()
	}
	text += fmt.Sprintf(" #%-4d %s %s", e.Call, e.Arrow(), e.Text())
	if e.Took > 0 {
		text += fmt.Sprintf("  (%.3f ms)", float64(e.Took.Microseconds())/1000)
	}
	return text
}

// wide is how long a line of the normal form may be before its parts get lines of their own.
const wide = 100

// Print writes the entries of a normal form: the lane, the direction, and the text. An entry that
// is too long for one line continues below, indented.
func Print(out io.Writer, entries []Entry) error {
	width := 0
	for _, e := range entries {
		width = max(width, utf8.RuneCountInString(plain.Line(e.Lane)))
	}
	for _, e := range entries {
		head := fmt.Sprintf("%-*s %s ", width, plain.Line(e.Lane), e.Arrow())
		if _, err := fmt.Fprintln(out, strings.Join(e.broken(head), "\n")); err != nil {
			return err
		}
	}
	return nil
}

// broken returns an entry on one line, or on one for each part.
func (e Entry) broken(head string) []string {
	line := head + e.Text()
	if utf8.RuneCountInString(line) <= wide || len(e.Parts) < 2 {
		return []string{line}
	}
	indent := strings.Repeat(" ", utf8.RuneCountInString(head)+utf8.RuneCountInString(e.Verb)+1)
	lines := []string{head + e.Verb + " " + e.Parts[0]}
	inner := ""
	if strings.HasPrefix(e.Parts[0], "Then ") {
		inner = strings.Repeat(" ", len("Then "))
	}
	for _, part := range e.Parts[1:] {
		if strings.HasPrefix(part, "Then ") || strings.HasPrefix(part, "Else ") {
			inner = ""
		}
		lines = append(lines, indent+inner+part)
		if e.Kind == wiretap.Request {
			inner = strings.Repeat(" ", len("Then "))
		}
	}
	if e.Lost {
		lines[len(lines)-1] += " (lost)"
	}
	return lines
}
