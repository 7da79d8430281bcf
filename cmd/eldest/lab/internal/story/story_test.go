package story

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A check without material fails.
func TestJudge(t *testing.T) {
	good := Judge("a", 1, nil, "%d of them", 1)
	bad := Judge("b", 1, []string{"p1", "p2", "p3", "p4", "p5", "p6", "p7"}, "x")
	empty := Judge("c", 0, nil, "x")
	require.Equal(t, []Verdict{bad, empty}, Failed([]Verdict{good, bad, empty}))
	lines := Style{}.Verdicts([]Verdict{good, bad, empty})
	require.Equal(t, "  ok     a                               1 of them", lines[0])
	require.Contains(t, lines, "           and 2 more")
}

func TestWords(t *testing.T) {
	require.Equal(t, "1.5 ms", Millis(1500*time.Microsecond))
	require.Equal(t, "1500 ms", Millis(1500*time.Millisecond))
	require.Equal(t, "1 process", Count(1, "process"))
	require.Equal(t, "2 processes", Count(2, "process"))
	require.Equal(t, "0 keys", Count(0, "key"))
	require.Len(t, Shortened(make([]string, 100)), 13)
	for n, want := range map[int]string{7: "7", 999: "999", 1000: "1,000", 10_020: "10,020", 1234567: "1,234,567"} {
		require.Equal(t, want, Thousands(n))
	}
}

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
