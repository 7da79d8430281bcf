package alerts

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each alert has a section that tells operators what to do, and each section is about an existing
// alert. Metrics in the guide exist.
func TestRunbookCoversTheAlerts(t *testing.T) {
	alerts := alertsOf(t, "alerts.yaml", `- alert: (\w+)`)
	require.Equal(t, alerts, alertsOf(t, "../operations/runbook.md", `(?m)^### (\w+)$`))

	known := alertsOf(t, "metrics.md", "(?m)^\\| `(eldest_\\w+)` \\|")
	for _, file := range []string{"../operations/runbook.md", "alerts.yaml", "alerts_test.yaml", "dashboard.json", "metrics.md"} {
		text, err := os.ReadFile(filepath.Join(docs, file))
		require.NoError(t, err)
		named := regexp.MustCompile(`\beldest_[a-z_]+`).FindAllString(string(text), -1)
		require.NotEmpty(t, named, file)
		for _, name := range named {
			require.Positive(t, known[regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")], "%s names %s", file, name)
		}
	}
	// Conversely, each metric is used by the dashboard or an alert.
	text, err := os.ReadFile(filepath.Join(docs, "dashboard.json"))
	require.NoError(t, err)
	rules, err := os.ReadFile(filepath.Join(docs, "alerts.yaml"))
	require.NoError(t, err)
	for name := range known {
		if name != "eldest_token" && name != "eldest_sessions_total" { // these are for manual searches
			require.Regexp(t, `\b`+name, string(text)+string(rules))
		}
	}
}
