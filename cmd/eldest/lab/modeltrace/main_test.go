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
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// drawn draws a trace, and checks that the document is well-formed and the same each time.
func drawn(t *testing.T, lines ...string) string {
	t.Helper()
	draw := func() string {
		var out strings.Builder
		require.NoError(t, run(strings.NewReader(strings.Join(lines, "\n")), &out, "a title", "G1: a < b"))
		return out.String()
	}
	doc := draw()
	wellFormed(t, doc)
	for range 20 {
		require.Equal(t, doc, draw())
	}
	return doc
}

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

// Each kind of line is parsed as the package comment describes.
func TestParse(t *testing.T) {
	steps, err := parse(strings.NewReader(strings.Join([]string{
		"~ c1 begin key", "~ c1 call put key, who is older? => token 1", "~ c0 send r0 lease?", "~ etcd recv r0",
		"~ etcd send a0 c0 granted for 4 ticks", "~ tick but for c0", "~ c1 sure 2", "~ c0 hears own key is gone",
		"~ outside note key of c1 removed", "~ c1 end key",
	}, "\n")))
	require.NoError(t, err)
	require.Equal(t, []step{
		{who: "A", did: "begin", name: "key"},
		{who: "A", did: "call", text: "put key, who is older?", reply: "token 1"},
		{who: "B", did: "send", name: "r0", to: "etcd", text: "lease?"},
		{who: "etcd", did: "recv", name: "r0"},
		{who: "etcd", did: "send", name: "a0", to: "B", text: "granted for 4 ticks"},
		{did: "tick", text: "but for B"},
		{who: "A", did: "sure", text: "2"},
		{who: "B", did: "hears", text: "own key is gone"},
		{who: "outside", did: "note", text: "key of A removed"},
		{who: "A", did: "end", name: "key"},
	}, steps)
}

// A trace that cannot be drawn is an error, and nothing is written: a diagram that omits a step
// would be wrong.
func TestRefuses(t *testing.T) {
	for name, trace := range map[string]string{
		"nothing":              "",
		"a line of spin's own": "spin: trail ends after 53 steps",
		"a tick of its own":    "tick",
		"an unknown verb":      "~ c0 dances",
		"a call unanswered":    "~ c0 call put key",
		"a reply to nothing":   "~ c0 note here\n~ c0 recv a0",
	} {
		var out strings.Builder
		require.Error(t, run(strings.NewReader(trace), &out, "", ""), name)
		require.Empty(t, out.String(), name)
	}
}

// What is open when the trace ends is drawn to the end; a bar ends once, and a bar that never began is not
// drawn. Texts are escaped. At its deadline a candidate no longer leads, even if it has not noticed.
func TestDraws(t *testing.T) {
	doc := drawn(t, "~ c0 begin leads", "~ c0 note leads", "~ c0 send w1 <x>", "~ c1 send r1 y", "~ c1 begin key", "~ c0 begin key")
	for _, text := range []string{"&lt;x&gt; (under way)", "y (under way)", "G1: a &lt; b"} {
		require.Contains(t, doc, text)
	}
	require.Equal(t, 2, strings.Count(doc, `class="leads"`), "the bar and the legend")
	require.Equal(t, 3, strings.Count(doc, `class="key"`), "two bars and the legend")
	doc = drawn(t, "~ c0 end leads", "~ c0 begin leads", "~ c0 note leads", "~ c0 end leads", "~ c0 end leads")
	require.Equal(t, 2, strings.Count(doc, `class="leads"`))

	bar := regexp.MustCompile(`<rect [^>]*class="leads" */>`)
	before := []string{"~ c0 begin leads", "~ c0 note leads", "~ tick", "~ c0 sure 0"}
	doc = drawn(t, before...)
	later := drawn(t, append(before, "~ etcd note the lease ends", "~ etcd note and more")...)
	require.Equal(t, bar.FindString(doc), bar.FindString(later), "what comes later prolonged the bar")
	require.NotEmpty(t, bar.FindString(doc))
}

// The committed diagrams are well-formed, and each names the guarantee that is violated.
func TestCommittedDiagrams(t *testing.T) {
	files, err := filepath.Glob("../../../../docs/model/*.svg")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3)
	for _, file := range files {
		doc, err := os.ReadFile(file)
		require.NoError(t, err)
		wellFormed(t, string(doc))
		require.Regexp(t, `violated: (G[1-8]|T)\b`, string(doc)) // T is the guarantee of a transfer
	}
}
