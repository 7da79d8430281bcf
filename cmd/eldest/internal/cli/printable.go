package cli

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
)

// MaxShown is how many bytes of a text from outside a line for people shows; --json shows all of it.
const MaxShown = 256

// Printable renders a text from outside for a terminal. Keys and values can be any bytes: control
// characters, and those that change the direction of writing, could make a terminal show or do
// something else. Harmless text stays as it is, everything else is quoted like a string in Go.
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

// harmless reports whether text is visible, and cannot be mistaken for a quoted one.
func harmless(text string) bool {
	return !strings.HasPrefix(text, `"`) && strings.TrimSpace(text) == text && plain.Fit(text)
}
