package page

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the page computes without a browser is tested by Node.js: assets_test.
func TestScripts(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") == "true" {
			require.Fail(t, "SKIPPED IN CI: there is no Node.js", "apt-get install -y --no-install-recommends nodejs")
		}
		t.Skip("SKIPPED: there is no Node.js here: apt-get install -y --no-install-recommends nodejs")
	}
	tests, err := filepath.Glob(filepath.Join("assets_test", "*.test.mjs"))
	require.NoError(t, err)
	require.NotEmpty(t, tests)
	out, err := exec.CommandContext(t.Context(), node, append([]string{"--test"}, tests...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
