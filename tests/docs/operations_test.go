package docs

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Log lines and metrics in the pages of docs/operations exist.
func TestOperationsNameWhatThereIs(t *testing.T) {
	r, err := tree()
	require.NoError(t, err)
	logged := found(t, r, "hooks/log.go", `"([a-z][a-z' ]+ [a-z]+)"`)
	told := found(t, r, "docs/operations/failures.md", `"((?:lease|session|leadership|candidacy|candidate's|observer's|foreign) [a-z ]+)"`)
	require.Greater(t, len(told), 6)
	for _, line := range told {
		require.Contains(t, logged, line)
	}
	metrics := found(t, r, "docs/observability/metrics.md", "(?m)^\\| `(eldest_\\w+)` \\|")
	for _, page := range []string{"failures", "permissions", "runbook"} {
		for _, name := range found(t, r, "docs/operations/"+page+".md", `\b(eldest_[a-z_]+)`) {
			require.Contains(t, metrics, name)
		}
	}
}

// found returns the first groups of all matches in a file, sorted, each once.
func found(t *testing.T, r *Repository, file, pattern string) []string {
	t.Helper()
	text, err := r.text(file)
	require.NoError(t, err)
	var all []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}
