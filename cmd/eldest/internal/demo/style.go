package demo

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

// ink is an SGR sequence.
type ink string

const (
	plain  ink = ""
	bold   ink = "\x1b[1m"
	dim    ink = "\x1b[2m"
	red    ink = "\x1b[31m"
	green  ink = "\x1b[32m"
	yellow ink = "\x1b[33m"
	cyan   ink = "\x1b[36m"
	off    ink = "\x1b[0m"
)

func (s Style) paint(i ink, text string) string {
	if !s.Colour || i == plain {
		return text
	}
	return string(i) + text + string(off)
}

// mark shows whether something held.
func (s Style) mark(ok bool) string {
	switch {
	case ok && s.Colour:
		return s.paint(green, "✓ ")
	case ok:
		return "ok    "
	case s.Colour:
		return s.paint(red, "✗ ")
	default:
		return "FAILED"
	}
}
