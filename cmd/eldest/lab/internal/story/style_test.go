package story

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColoursAreForTerminals(t *testing.T) {
	none := func(string) string { return "" }
	require.Zero(t, StyleOf(&bytes.Buffer{}, none))

	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	require.Zero(t, StyleOf(file, none), "a file")

	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("SKIPPED IN CI: no terminal: %v", err)
		}
		t.Skipf("SKIPPED: no terminal: %v", err)
	}
	defer func() { require.NoError(t, terminal.Close()) }()
	require.True(t, StyleOf(terminal, none).Colour)
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		getenv := func(name string) string {
			if value, ok := bytes.CutPrefix([]byte(env), []byte(name+"=")); ok {
				return string(value)
			}
			return ""
		}
		require.Zero(t, StyleOf(terminal, getenv), env)
	}
}

func TestPlainTextHasNoEscapes(t *testing.T) {
	require.Equal(t, "x", Style{}.Paint(Red, "x"))
	require.Equal(t, "\x1b[31mx\x1b[0m", Style{Colour: true}.Paint(Red, "x"))
}
