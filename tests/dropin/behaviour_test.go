package dropin

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// behaviour is a row of the table.
type behaviour struct {
	// what is the row's name: the behaviour that is required.
	what string
	// theirs is how etcd's package fails, as the text of the check that fails; empty: etcd's
	// package behaves as required.
	theirs string
	holds  func(s *stage)
}

// table returns all rows, in the order of the documentation.
func table() []behaviour {
	return slices.Concat(sessionRows, electionRows, lossRows, ghostRows, sharedRows, observeRows, mutexRows, nameRows)
}

// Each row holds with our package; with etcd's package it holds as well, or fails as the row describes.
func TestTable(t *testing.T) {
	t.Parallel()
	// Rows are run in reverse order: rows that were started last run first, and the first rows take
	// longest.
	for _, row := range slices.Backward(table()) {
		t.Run(row.what, func(t *testing.T) {
			t.Parallel()
			for _, f := range []face{ours, theirs} {
				t.Run(f.name, func(t *testing.T) {
					t.Parallel()
					failed := play(t, f, row)
					if f.name == ours.name || row.theirs == "" {
						require.Empty(t, failed)
						return
					}
					require.Contains(t, failed, row.theirs, "etcd's package does not fail as it is said to")
				})
			}
		})
	}
}

// play runs a row and returns the check that failed; empty: the row holds.
func play(t *testing.T, f face, row behaviour) (failed string) {
	s := newStage(t, f, f.name != ours.name && row.theirs != "")
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			failed = string(f)
		}
	}()
	row.holds(s)
	return ""
}

// failure is a check that failed; it is passed as a panic on the goroutine of the row.
type failure string

// The documentation contains exactly these rows.
func TestTableIsDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/reference/drop-in.md")
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(doc), "<!-- table -->\n")
	require.True(t, ok)
	shown, tail, ok := strings.Cut(rest, "<!-- end -->")
	require.True(t, ok)
	var b strings.Builder
	b.WriteString("| What must hold | etcd's package |\n|---|---|\n")
	for _, row := range table() {
		fmt.Fprintf(&b, "| %s | %s |\n", row.what, saying(row.theirs))
	}
	if os.Getenv("ELDEST_WRITE_TABLE") != "" {
		require.NoError(t, os.WriteFile("../../docs/reference/drop-in.md", []byte(head+"<!-- table -->\n"+b.String()+"<!-- end -->"+tail), 0o600))
		return
	}
	require.True(t, b.String() == shown, "the rows are others; write them anew: ELDEST_WRITE_TABLE=1 go test ./dropin -run TestTableIsDocumented")
}

func saying(theirs string) string {
	if theirs == "" {
		return "the same"
	}
	return "fails: " + theirs
}
