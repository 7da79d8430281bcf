package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each alert has a section in the operations guide that says what it means, and leads to
// the one that says what to do; no section is about an alert that there is not.
func TestOperationsCoverTheAlerts(t *testing.T) {
	r, err := tree()
	require.NoError(t, err)
	alerts := found(t, r, "docs/observability/alerts.yaml", `- alert: (\w+)`)
	require.NotEmpty(t, alerts)
	require.Equal(t, alerts, found(t, r, "docs/operations.md", `(?m)^### (Eldest\w+)$`))
	text, err := r.text("docs/operations.md")
	require.NoError(t, err)
	for section := range strings.SplitSeq(text, "\n### ") {
		name, rest, _ := strings.Cut(section, "\n")
		if slices.Contains(alerts, name) {
			require.Contains(t, rest, "(observability/README.md#"+strings.ToLower(name)+")", "%s does not say where to read what to do", name)
		}
	}
}

// Log lines and metrics that the operations guide tells of are there to be seen.
func TestOperationsNameWhatThereIs(t *testing.T) {
	r, err := tree()
	require.NoError(t, err)
	logged := found(t, r, "hooks/log.go", `"([a-z][a-z' ]+ [a-z]+)"`)
	told := found(t, r, "docs/operations.md", `"((?:lease|session|leadership|candidacy|candidate's|observer's|foreign) [a-z ]+)"`)
	require.Greater(t, len(told), 6)
	for _, line := range told {
		require.Contains(t, logged, line)
	}
	metrics := found(t, r, "docs/observability/metrics.md", "(?m)^\\| `(eldest_\\w+)` \\|")
	for _, name := range found(t, r, "docs/operations.md", `\b(eldest_[a-z_]+)`) {
		require.Contains(t, metrics, name)
	}
}

// found are the first groups of all matches in a file, sorted, each once.
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
