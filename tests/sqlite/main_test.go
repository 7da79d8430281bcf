package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// build builds the program, as a reader does.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "sqlite")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// open opens a ledger for the test.
func open(t *testing.T, file string, fenced bool) *ledger {
	t.Helper()
	l, err := openLedger(t.Context(), file, fenced)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.close()) })
	return l
}

// entry is one line of the log.
type entry struct {
	node     string
	token, n int64
}

// trail reads all writes, in the order in which SQLite committed them.
func (l *ledger) trail(t *testing.T) (all []entry) {
	t.Helper()
	rows, err := l.db.QueryContext(t.Context(), "SELECT node, token, n FROM trail ORDER BY id")
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var e entry
		require.NoError(t, rows.Scan(&e.node, &e.token, &e.n))
		all = append(all, e)
	}
	require.NoError(t, rows.Err())
	return all
}
