package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

const chapter = "# One\n\n![one](one.svg)\n\n<!-- trace one -->\nold\n<!-- end trace -->\n\nEnd.\n"

// shelf creates a repository with one chapter and the named programs.
func shelf(t *testing.T, text string, programs ...string) string {
	t.Helper()
	root := t.TempDir()
	write := func(file, text string) {
		path := filepath.Join(root, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("docs/book/01-one.md", text)
	for _, p := range programs {
		write("examples/book/"+p+"/main.go", "package main\n")
	}
	return root
}

var entries = []transcript.Entry{{Lane: "anna", Kind: wiretap.Request, Verb: "Put", Parts: []string{`"k"`}}}

// Only the block is replaced; after that the page is current.
func TestPutAndWrite(t *testing.T) {
	root := shelf(t, chapter, "one")
	b, err := open(root)
	require.NoError(t, err)
	diff, err := b.put("one", entries, true)
	require.NoError(t, err)
	require.Contains(t, diff, "- old")
	_, err = b.put("one", entries, false)
	require.NoError(t, err)
	require.NoError(t, b.write(false))
	text, err := os.ReadFile(filepath.Join(root, "docs/book/01-one.md"))
	require.NoError(t, err)
	require.Equal(t, "# One\n\n![one](one.svg)\n\n<!-- trace one -->\n\n```"+info+"\nanna → Put \"k\"\n```\n\n<!-- end trace -->\n\nEnd.\n", string(text))

	b, err = open(root)
	require.NoError(t, err)
	diff, err = b.put("one", entries, true)
	require.NoError(t, err)
	require.Empty(t, diff)
	require.NoError(t, os.WriteFile(filepath.Join(root, "docs/book/one.svg"), []byte("<svg/>"), 0o600))
	b, err = open(root)
	require.NoError(t, err)
	diff, err = b.put("one", entries, true)
	require.NoError(t, err)
	require.Contains(t, diff, "one.svg")
}

// A book with a missing part is refused.
func TestOpenRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		text     string
		programs []string
		says     string
	}{
		"a program without a chapter": {chapter, []string{"one", "two"}, "examples/book/two"},
		"a chapter without a program": {chapter, nil, "there is no examples/book/one"},
		"a block twice":               {chapter + chapter, []string{"one"}, "already"},
		"no picture":                  {"<!-- trace one -->\n<!-- end trace -->\n", []string{"one"}, "one.svg is not shown"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(shelf(t, tc.text, tc.programs...))
			require.ErrorContains(t, err, tc.says)
		})
	}
	b, err := open(shelf(t, "(one.svg)\n<!-- trace one -->\n", "one"))
	require.NoError(t, err)
	_, err = b.put("one", entries, false)
	require.ErrorContains(t, err, "does not end")
}
