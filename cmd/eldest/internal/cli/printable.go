package cli

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
)

// MaxShown is how many bytes of a text from outside a line for people shows; what
// is longer is for --json.
const MaxShown = 256

// Printable renders a text from outside for a terminal. Keys and values are
// anybody's bytes: control characters, and those that turn the direction of
// writing, could make a terminal show or do what was never printed. Harmless text
// stays as it is, everything else is quoted like a string in Go.
func Printable(text string) string {
	cut := ""
	if len(text) > MaxShown {
		keep := MaxShown
		for keep > 0 && !utf8.RuneStart(text[keep]) {
			keep--
		}
		text, cut = text[:keep], "..."
	}
	if harmless(text) {
		return text + cut
	}
	return strconv.Quote(text) + cut
}

// harmless reports whether text is visible, and not to be taken for a quoted one.
func harmless(text string) bool {
	return !strings.HasPrefix(text, `"`) && strings.TrimSpace(text) == text && plain.Fit(text)
}
