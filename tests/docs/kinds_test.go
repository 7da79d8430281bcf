package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// Correct pages, and the same pages with faults: testdata/kinds. -rewrite writes the faults found.
func TestKindsAreFound(t *testing.T) {
	t.Parallel()
	r, err := tree()
	require.NoError(t, err)
	code, err := code()
	require.NoError(t, err)
	command, err := eldest()
	require.NoError(t, err)
	one := stage(t)
	pages, found := 0, map[string]bool{}
	datadriven.RunTest(t, "testdata/kinds", func(t *testing.T, d *datadriven.TestData) string {
		var said strings.Builder
		faults := r.all(t.Context(), Parse("docs/README.md", []byte(d.Input)), code, command, func() Stage { return one })
		for _, f := range faults {
			require.Positive(t, f.Line)
			fmt.Fprintf(&said, "%s: %s\n", f.Kind, f.Text)
			found[f.Kind] = true
		}
		require.Len(t, faults, pages%2, "of a right page and a broken one, only the second has a fault")
		pages++
		return said.String()
	})
	require.Equal(t, map[string]bool{"link": true, "name": true, "mark": true, "go": true, "file": true, "parse": true, "command": true, "run": true}, found)
	require.Zero(t, pages%2)
}

// A page that no link leads to is found.
func TestReachIsFound(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("docs/README.md", "[a](a.md) [b](b)")
	write("docs/a.md", "[c](c.md#x)")
	write("docs/b/1.md", "")
	write("docs/c.md", "")
	r, err := Open(dir)
	require.NoError(t, err)
	require.Empty(t, r.Reach())
	write("docs/d.md", "[c](c.md)")
	r, err = Open(dir)
	require.NoError(t, err)
	require.Len(t, r.Reach(), 1)
	require.Equal(t, "docs/d.md", r.Reach()[0].Page)
}

// A block that does not end is killed, and so are the processes that a block leaves in the
// background.
func TestBlocksAreEnded(t *testing.T) {
	t.Parallel()
	r, err := tree()
	require.NoError(t, err)
	s := Stage{Tmp: t.TempDir(), Bin: bin}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = r.bash(ctx, "sleep 3600", s)
	require.ErrorContains(t, err, "ended from outside")

	out, err := r.bash(t.Context(), "sleep 3600 & echo $!", s)
	require.NoError(t, err)
	// Dead, though perhaps a zombie.
	dead := "! kill -0 $0 2>/dev/null || grep -q ') Z ' /proc/$0/stat"
	require.Eventually(t, func() bool { return exec.Command("bash", "-c", dead, strings.TrimSpace(out)).Run() == nil }, 30*time.Second, 10*time.Millisecond)
}
