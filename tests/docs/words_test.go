package docs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pages, comments, messages and help contain none of the worst words.
func TestWords(t *testing.T) {
	t.Parallel()
	r, err := tree()
	require.NoError(t, err)
	faults, err := r.Words()
	require.NoError(t, err)
	report(t, faults)
}

// A word is found in each place, except in code spans and blocks; a line break counts as a space.
func TestWordsAreFound(t *testing.T) {
	write := func(name, text string) *Repository {
		r := &Repository{Root: t.TempDir(), files: map[string]bool{name: false}}
		require.NoError(t, os.WriteFile(filepath.Join(r.Root, name), []byte(text), 0o600))
		return r
	}
	for name, texts := range map[string][]string{
		"a.md": {"# A\n\nWhoever reads.\n", "# A\n\nIt was told\nof it.\n", "# A\n\n| at night |\n"},
		"a.go": {"package a\n\n// A is woken at\n// night.\ntype A int\n", "package a\n\nconst A = \"at night\"\n"},
	} {
		for _, text := range texts {
			faults, err := write(name, text).Words()
			require.NoError(t, err)
			require.Len(t, faults, 1, text)
			require.Equal(t, 3, faults[0].Line, text)
		}
	}
	faults, err := write("a.md", "# A\n\n`whoever`\n\n```text\nwhoever\n```\n\n[a](whoever.md)\n").Words()
	require.NoError(t, err)
	require.Empty(t, faults)
}
