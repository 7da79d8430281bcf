package eldest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The README's programs compile as they are printed there, each with what stands around
// it. That they do what they say is shown by the examples, which run.
func TestReadmeProgramsCompile(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	around := []string{`package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

func run(ctx context.Context, client *clientv3.Client) error {
%s}

func main() { _ = run(context.Background(), nil) }
`, `package main

import (
	"context"
	"net"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
)

func run(ctx context.Context, client *clientv3.Client, listener net.Listener) error {
%s}

func main() { _ = run(context.Background(), nil, nil) }
`, `package main

import (
	"context"
	"crypto/rand"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/resolver"
)

func run(ctx context.Context, builder grpcresolver.Builder, creds credentials.TransportCredentials, ttl time.Duration) error {
%s}

func main() { _ = run(context.Background(), nil, nil, 0) }
`, `package main

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/otel/trace"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/metrics"
	"github.com/eldest-io/eldest/traces"
)

func run(ctx context.Context, client *clientv3.Client, registry *prometheus.Registry, provider trace.TracerProvider) (*election.Candidate, error) {
%s	return candidate, err
}

func main() { _, _ = run(context.Background(), nil, nil, nil) }
`}
	programs := strings.Split(string(readme), "```go\n")[1:]
	require.Len(t, programs, len(around), "a program of the README is not compiled")
	for i, program := range programs {
		body, _, found := strings.Cut(program, "```")
		require.True(t, found)
		compile(t, fmt.Sprintf(around[i], body))
	}
}

// compile builds a program inside the workspace, by an overlay that does not touch the
// tree.
func compile(t *testing.T, source string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(program, []byte(source), 0o600))
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
	build := exec.CommandContext(ctx, "go", "build", "-overlay", list, "-o", filepath.Join(dir, "program"), "./readmeprogram")
	build.Env = append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, source)
}
