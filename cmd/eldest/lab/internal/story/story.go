package story

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
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

// Verdict is what one check found.
type Verdict struct {
	// Name is the property, as a phrase.
	Name string `json:"check"`
	// OK is true if nothing contradicts it and there was something to judge.
	OK bool `json:"ok"`
	// Detail says on what the verdict rests.
	Detail string `json:"detail"`
	// Problems are the violations.
	Problems []string `json:"problems,omitempty"`
}

// Judge turns violations into a verdict. Nothing to judge is no success: a check
// that had no material would be green whatever was done.
func Judge(name string, material int, problems []string, detail string, args ...any) Verdict {
	if material == 0 {
		problems = append(problems, "nothing happened that could have been checked")
	}
	return Verdict{Name: name, OK: len(problems) == 0, Detail: fmt.Sprintf(detail, args...), Problems: problems}
}

// Texts says what the oracle found, for Judge.
func Texts(found ...[]oracle.Violation) (problems []string) {
	for _, list := range found {
		for _, v := range list {
			problems = append(problems, v.Text)
		}
	}
	return problems
}

// Failed returns the verdicts that are not OK.
func Failed(verdicts []Verdict) []Verdict {
	var failed []Verdict
	for _, v := range verdicts {
		if !v.OK {
			failed = append(failed, v)
		}
	}
	return failed
}

// maxProblems of one check are shown to people; --json has them all.
const maxProblems = 5

// Verdicts renders verdicts, and what contradicts them, as lines.
func (s Style) Verdicts(verdicts []Verdict) []string {
	var lines []string
	for _, v := range verdicts {
		lines = append(lines, fmt.Sprintf("  %s %-31s %s", s.mark(v.OK), v.Name, s.Paint(Dim, v.Detail)))
		for i, p := range v.Problems {
			if i == maxProblems {
				lines = append(lines, fmt.Sprintf("           and %d more", len(v.Problems)-i))
				break
			}
			lines = append(lines, "           "+s.Paint(Red, p))
		}
	}
	return lines
}

// InMillis is a time span as the plays' JSON has it.
func InMillis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Millis renders a time span the way a play speaks of them.
func Millis(d time.Duration) string {
	if d < 10*time.Millisecond && d > -10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// Count renders a number with its noun.
func Count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	default:
		return fmt.Sprintf("%d %ss", n, noun)
	}
}

// Shortened leaves the middle of a long list out.
func Shortened(list []string) []string {
	const ends = 6
	if len(list) <= 2*ends+1 {
		return list
	}
	short := append([]string(nil), list[:ends]...)
	short = append(short, "...")
	return append(short, list[len(list)-ends:]...)
}

// Thousands renders a number with commas.
func Thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", Thousands(n/1000), n%1000)
}
