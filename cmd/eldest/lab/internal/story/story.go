package story

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Style says which features of a terminal the output may use. The zero value is plain text.
type Style struct{ Colour bool }

// StyleOf returns colours for a terminal, and plain text for everything else, if NO_COLOR is set
// and not empty, and for dumb terminals.
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

// Verdict is the result of one check.
type Verdict struct {
	// Name is the property, as a phrase.
	Name string `json:"check"`
	// OK is true if nothing contradicts it and there was something to judge.
	OK bool `json:"ok"`
	// Detail is the basis of the verdict.
	Detail string `json:"detail"`
	// Problems are the violations.
	Problems []string `json:"problems,omitempty"`
}

// Judge turns violations into a verdict. A check without material fails; otherwise it would always
// succeed.
func Judge(name string, material int, problems []string, detail string, args ...any) Verdict {
	if material == 0 {
		problems = append(problems, "there was nothing to check")
	}
	return Verdict{Name: name, OK: len(problems) == 0, Detail: fmt.Sprintf(detail, args...), Problems: problems}
}

// Texts returns the oracle's violations as text, for Judge.
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

// maxProblems of one check are shown as text; --json has them all.
const maxProblems = 5

// Verdicts formats verdicts and their problems as lines.
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

// InMillis returns a duration in milliseconds, as in the demos' JSON.
func InMillis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Millis formats a duration as in the demos' text.
func Millis(d time.Duration) string {
	if d < 10*time.Millisecond && d > -10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// Count formats a number with its noun.
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

// Shortened omits the middle of a long list.
func Shortened(list []string) []string {
	const ends = 6
	if len(list) <= 2*ends+1 {
		return list
	}
	short := append([]string(nil), list[:ends]...)
	short = append(short, "...")
	return append(short, list[len(list)-ends:]...)
}

// Thousands formats a number with commas.
func Thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", Thousands(n/1000), n%1000)
}
