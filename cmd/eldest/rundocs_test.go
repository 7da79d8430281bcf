//go:build linux

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
)

// Each statement of docs/run.md names a test; a test that is renamed or removed takes its
// statement along.
func TestRunDocumentNamesTestsThatThereAre(t *testing.T) {
	page, err := os.ReadFile("../../docs/run.md")
	require.NoError(t, err)
	var sources strings.Builder
	for _, path := range append(glob("run*_test.go"), glob("internal/job/*_test.go")...) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		sources.Write(data)
	}
	all := sources.String()
	names := 0
	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)(/[a-z, ]+)?`").FindAllStringSubmatch(string(page), -1) {
		names++
		require.Contains(t, all, "func "+m[1]+"(", m[0])
		if m[2] != "" {
			require.Contains(t, all, "\t\t\""+m[2][1:]+"\": {", m[0])
		}
	}
	require.Greater(t, names, 20)

	// The table of faults: each row's, and each fault that is tried.
	_, table, _ := strings.Cut(string(page), "`TestRunIsDeadBeforeAnotherLeads/…` |")
	faults := 0
	for _, m := range regexp.MustCompile("\\| `([a-z, ]+)` \\|\n").FindAllStringSubmatch(table, -1) {
		faults++
		require.Contains(t, all, "\t\t\""+m[1]+"\": {", m[0])
	}
	data, err := os.ReadFile("runfaults_test.go")
	require.NoError(t, err)
	_, tried, _ := strings.Cut(string(data), "faults := map[string]struct {")
	tried, _, _ = strings.Cut(tried, "for name, c := range faults")
	require.Equal(t, strings.Count(tried, "\": {\n"), faults, "a fault is tried and not told of, or the other way round")
}

// What --help says of exit codes is what doc.go says.
func TestRunHelpAndExitCodes(t *testing.T) {
	code, help, _ := runLine(t, "run", "--help")
	require.Equal(t, cli.ExitOK, code)
	for _, words := range []string{
		"ELDEST_ELECTION", "ELDEST_KEY", "ELDEST_TOKEN", "ELDEST_DEADLINE", "ELDEST_CAUSE", "ELDEST_EXIT_CODE", "ELDEST_PID", "ELDEST_TLS_KEY",
		"--grace", "--restart", "--exit-code", "--on-win", "--on-loss", "--hook-timeout", "--health", "--health-every", "Not guaranteed",
	} {
		require.Contains(t, help, words)
	}
	require.NotContains(t, help, keeperCommand, "nobody is to use it")
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	require.Contains(t, string(doc), "(campaign, run)")
	require.Contains(t, string(doc), "--exit-code")
}
