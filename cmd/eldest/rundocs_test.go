//go:build linux

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

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
	for _, m := range regexp.MustCompile("`TestScript/([a-z-]+)`").FindAllStringSubmatch(string(page), -1) {
		names++
		require.FileExists(t, "testdata/script/"+m[1]+".txtar")
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
