package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// show formats a value of a unit of samples, with three digits.
func show(v float64, unit string) string {
	switch unit {
	case bench.Nanoseconds:
		switch {
		case v == 0:
			return "0 s"
		case v < float64(999500*time.Nanosecond):
			return three(v/float64(time.Microsecond)) + " µs"
		case v < float64(999500*time.Microsecond):
			return three(v/float64(time.Millisecond)) + " ms"
		}
		return three(v/float64(time.Second)) + " s"
	case bench.Bytes:
		switch {
		case v < 999.5:
			return fmt.Sprintf("%.0f B", v)
		case v < 999.5*1024:
			return three(v/1024) + " KiB"
		}
		return three(v/1024/1024) + " MiB"
	}
	return story.Thousands(int(v))
}

// three formats a number with three digits, or all before the point.
func three(v float64) string {
	switch {
	case v >= 99.95:
		return story.Thousands(int(v + 0.5))
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// span formats a duration that was chosen, such as a timeout or a limit.
func span(d time.Duration) string {
	switch {
	case d >= 2*time.Minute:
		return trimmed(d.Minutes()) + " min"
	case d >= time.Second:
		return trimmed(d.Seconds()) + " s"
	}
	return trimmed(float64(d)/float64(time.Millisecond)) + " ms"
}

func trimmed(v float64) string {
	text := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// list joins names as a sentence does.
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// line makes one line of a text of any source, and shortens it; the JSON has all of it.
func line(text string) string {
	text = plain.Lines(strings.Join(strings.Fields(text), " "))
	if runes := []rune(text); len(runes) > 300 {
		return string(runes[:299]) + "…"
	}
	return text
}
