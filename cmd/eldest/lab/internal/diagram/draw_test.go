package diagram_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/diagram"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

func drawn(t *testing.T, entries ...transcript.Entry) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, diagram.Draw(&b, "a <title>", entries))
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		require.NoError(t, err)
	}
}

func put(lane, key string) transcript.Entry {
	return transcript.Entry{Lane: lane, Kind: wiretap.Answer, Verb: "Put", Gained: []string{key}}
}

func gone(key string) transcript.Entry {
	return transcript.Entry{Lane: "anna", Kind: transcript.Event, Verb: "Watch", Gone: []string{key}}
}

// Texts are escaped, each client has a lifeline, etcd is in the middle, and the same entries give
// the same bytes.
func TestDraw(t *testing.T) {
	entries := []transcript.Entry{
		{Lane: "anna", Kind: wiretap.Request, Verb: "Put", Parts: []string{`"<k>" = "` + strings.Repeat("x", 200) + `"`}},
		{Lane: "bert", Kind: wiretap.Request, Verb: "Range", Parts: []string{`"k"`}, Lost: true},
		{Lane: "bert", Kind: wiretap.Note, Verb: "sleeps"},
		{Kind: wiretap.Note, Verb: "night falls"},
	}
	doc := drawn(t, entries...)
	require.Contains(t, doc, "a &lt;title&gt;")
	require.Contains(t, doc, "&lt;k&gt;")
	require.Equal(t, 3, strings.Count(doc, `class="life"`))
	require.Less(t, strings.Index(doc, ">anna<"), strings.Index(doc, ">etcd<"))
	require.Less(t, strings.Index(doc, ">etcd<"), strings.Index(doc, ">bert<"))
	require.Equal(t, 1, strings.Count(doc, `class="lost"`))
	require.Contains(t, doc, "night falls")
	for range 10 {
		require.Equal(t, doc, drawn(t, entries...))
	}
	require.Contains(t, drawn(t), "</svg>", "nothing is drawn as well")
}

// A key has a bar, with another colour from where it is the oldest of its election.
func TestBars(t *testing.T) {
	bars := func(doc, kind string) int { return strings.Count(doc, `class="`+kind+`"`) }
	one := drawn(t, put("anna", "e/L1"))
	require.Equal(t, 1+1, bars(one, "oldest"), "with the legend")
	require.Equal(t, 0+1, bars(one, "key"))
	both := drawn(t, put("anna", "e/L1"), put("bert", "e/L2"), put("carl", "f/L3"), gone("e/L1"), gone("e/L2"))
	require.Equal(t, 3+1, bars(both, "oldest"))
	require.Equal(t, 1+1, bars(both, "key"), "bert's, until anna is gone")
	require.Equal(t, 0, bars(drawn(t, gone("e/L9")), "key"), "what never came")
}
