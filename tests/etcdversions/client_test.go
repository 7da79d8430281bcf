package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The modules that programs import require the oldest client with which they work: Go's minimal version
// selection then lets a program keep its own. Fails if a requirement is raised, as "go get -u" does.
func TestModulesRequireTheOldestClient(t *testing.T) {
	root, err := rootDir()
	require.NoError(t, err)
	client := regexp.MustCompile(`(?m)^\s*go\.etcd\.io/etcd/(?:client|api|client/pkg)/v3 (v3\.\d+)\.`)
	for _, module := range []string{".", "metrics", "traces"} {
		data, err := os.ReadFile(filepath.Join(root, module, "go.mod"))
		require.NoError(t, err)
		found := client.FindAllStringSubmatch(string(data), -1)
		require.NotEmpty(t, found)
		for _, required := range found {
			require.Equal(t, "v3.6", required[1], "%s/go.mod: %s", module, required[0])
		}
	}
}
