package story

import (
	"fmt"
	"strings"
	"time"
)

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
