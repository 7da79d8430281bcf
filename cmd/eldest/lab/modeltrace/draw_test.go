package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func drawn(t *testing.T, lines ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := run(strings.NewReader(strings.Join(lines, "\n")), &out, "a title", "G1: a < b")
	return out.String(), err
}

// wellFormed reads a document to its end.
func wellFormed(t *testing.T, doc string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(doc)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

// What is still open when the trace ends is drawn to the end: bars, messages.
func TestDrawsWhatIsOpen(t *testing.T) {
	t.Parallel()
	doc, err := drawn(t, "~ c0 begin leads", "~ c0 note leads", "~ c0 send w1 write")
	require.NoError(t, err)
	wellFormed(t, doc)
	require.Contains(t, doc, "write (under way)")
	require.Equal(t, 2, strings.Count(doc, `class="leads"`), "the bar and the legend")
}

// A bar ends once, and one that never began is not drawn.
func TestDrawsBarsOnce(t *testing.T) {
	t.Parallel()
	doc, err := drawn(t, "~ c0 end leads", "~ c0 begin leads", "~ c0 note leads", "~ c0 end leads", "~ c0 end leads")
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(doc, `class="leads"`), "the bar and the legend")
}

// At its deadline a candidate leads no more, before it knows.
func TestDrawsTheDeadline(t *testing.T) {
	t.Parallel()
	before := []string{"~ c0 begin leads", "~ c0 note leads", "~ tick", "~ c0 sure 0"}
	doc, err := drawn(t, before...)
	require.NoError(t, err)
	later, err := drawn(t, append(before, "~ etcd note the lease ends", "~ etcd note and more")...)
	require.NoError(t, err)
	require.Equal(t, barOf(t, doc), barOf(t, later), "what comes later prolonged the bar")
}

// barOf returns the first bar of leading.
func barOf(t *testing.T, doc string) string {
	t.Helper()
	bar := regexp.MustCompile(`<rect [^>]*class="leads" */>`).FindString(doc)
	require.NotEmpty(t, bar)
	return bar
}

// Texts are escaped, and the same trace gives the same bytes.
func TestDrawsTheSame(t *testing.T) {
	t.Parallel()
	lines := []string{"~ c0 send r0 <x>", "~ c1 send r1 y", "~ c2 send r2 z", "~ c2 note n", "~ c1 begin key", "~ c0 begin key"}
	doc, err := drawn(t, lines...)
	require.NoError(t, err)
	wellFormed(t, doc)
	require.Contains(t, doc, "&lt;x&gt;")
	require.Contains(t, doc, "G1: a &lt; b")
	for range 20 {
		again, err := drawn(t, lines...)
		require.NoError(t, err)
		require.Equal(t, doc, again)
	}
}

// A reply to nothing is an error of the trace.
func TestDrawRefuses(t *testing.T) {
	t.Parallel()
	doc, err := drawn(t, "~ c0 note here", "~ c0 recv a0")
	require.Error(t, err)
	require.Empty(t, doc)
}

// The committed diagrams are documents, and each names the guarantee that breaks.
func TestCommittedDiagrams(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../docs/model/*.svg")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3)
	for _, file := range files {
		doc, err := os.ReadFile(file)
		require.NoError(t, err)
		wellFormed(t, string(doc))
		require.Regexp(t, `violated: (G[1-8]|T)\b`, string(doc)) // T is what a transfer promises
	}
}
