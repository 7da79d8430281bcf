package demo

import (
	"fmt"
	"strings"
	"time"
)

// millis renders a time span the way the demo speaks of them.
func millis(d time.Duration) string {
	if d < 10*time.Millisecond && d > -10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// count renders a number with its noun.
func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	default:
		return fmt.Sprintf("%d %ss", n, noun)
	}
}

// shortened leaves the middle of a long list out.
func shortened(list []string) []string {
	const ends = 6
	if len(list) <= 2*ends+1 {
		return list
	}
	short := append([]string(nil), list[:ends]...)
	short = append(short, "...")
	return append(short, list[len(list)-ends:]...)
}

// shortKey is the end of a candidate's key: enough to tell keys apart.
func shortKey(key string) string {
	const tail = 4
	if len(key) <= tail {
		return key
	}
	return ".." + key[len(key)-tail:]
}
