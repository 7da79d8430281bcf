package clitest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Hostile has one of each kind of what a terminal obeys or a reader falls for: it clears
// the screen, sets the title, turns what follows, hides a letter, is an 8-bit control
// sequence in UTF-8 and a raw one, deletes, and goes back to the beginning of the line.
const Hostile = "x\x1b[2J\x1b]0;owned\x07\u202ecod.exe\u200b\u009b31m\x9b31m\x7f\rnobody\u2028"

// RequireTame holds that nothing of an output does anything to a terminal.
func RequireTame(t testing.TB, where, output string) {
	t.Helper()
	for i, r := range output {
		require.True(t, r == '\n' || r == '\t' || strconv.IsPrint(r), "%s: %q in %q", where, r, output[max(0, i-40):min(len(output), i+40)])
	}
	require.True(t, len(output) == len(strings.ToValidUTF8(output, "")), "%s: %q is not UTF-8", where, output)
}
