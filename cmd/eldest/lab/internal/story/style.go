package story

import (
	"io"
	"os"
)

// Style says how much of a terminal the output may use. The zero value is plain
// text.
type Style struct{ Colour bool }

// StyleOf is colours for a terminal, and plain text for everything else, for
// NO_COLOR (unless it is empty) and for dumb terminals.
func StyleOf(w io.Writer, getenv func(string) string) Style {
	f, ok := w.(*os.File)
	if !ok || getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" {
		return Style{}
	}
	info, err := f.Stat()
	return Style{Colour: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// Ink is an SGR sequence.
type Ink string

// The inks.
const (
	Plain  Ink = ""
	Bold   Ink = "\x1b[1m"
	Dim    Ink = "\x1b[2m"
	Red    Ink = "\x1b[31m"
	Green  Ink = "\x1b[32m"
	Yellow Ink = "\x1b[33m"
	Cyan   Ink = "\x1b[36m"
	off    Ink = "\x1b[0m"
)

// Paint colours a text, if the style has colours.
func (s Style) Paint(i Ink, text string) string {
	if !s.Colour || i == Plain {
		return text
	}
	return string(i) + text + string(off)
}

// mark shows whether something held.
func (s Style) mark(ok bool) string {
	switch {
	case ok && s.Colour:
		return s.Paint(Green, "✓ ")
	case ok:
		return "ok    "
	case s.Colour:
		return s.Paint(Red, "✗ ")
	default:
		return "FAILED"
	}
}
