package eldest_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The README's program compiles as it is printed there. That it does what it says
// is shown by the examples, which run.
func TestReadmeProgramCompiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found, "the README has no program")
	body, _, found := strings.Cut(rest, "```")
	require.True(t, found)

	dir := t.TempDir()
	program := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(program, []byte(`package main

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

func run(ctx context.Context, client *clientv3.Client) error {
`+body+`}

func main() { _ = run(context.Background(), nil) }
`), 0o600))

	// An overlay puts the program into the module without touching the tree.
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(root, "readmeprogram", "main.go"): program},
	})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, overlay, 0o600))

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "build", "-overlay", list, "-o", filepath.Join(dir, "program"), "./readmeprogram").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
