package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// runLine runs a command line to its end.
func runLine(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return clitest.Line(t, newRootCmd(), args...)
}

func TestExitCodes(t *testing.T) {
	failure := errors.New("it failed")
	for name, c := range map[string]struct {
		err    error
		code   int
		stderr string
	}{
		"done":             {nil, cli.ExitOK, ""},
		"failed":           {failure, cli.ExitFailed, "eldest fake: it failed\n"},
		"coded":            {cli.Exit(cli.ExitLost, failure), cli.ExitLost, "eldest fake: it failed\n"},
		"coded and silent": {cli.Exit(cli.ExitNobody, nil), cli.ExitNobody, ""},
		"wrapped":          {fmt.Errorf("because %w", cli.Exit(cli.ExitLost, failure)), cli.ExitLost, "eldest fake: because it failed\n"},
		"usage":            {cli.Usagef("%d is too many", 7), cli.ExitUsage, "eldest fake: 7 is too many\nRun 'eldest fake --help' for usage.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root := cli.NewRoot()
			root.AddCommand(&cobra.Command{Use: "fake", RunE: func(*cobra.Command, []string) error { return c.err }})
			var stderr strings.Builder
			code := cli.Execute(t.Context(), root, []string{"fake"}, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &stderr})
			require.Equal(t, c.code, code)
			require.Equal(t, c.stderr, stderr.String())
		})
	}
}

// clusterOf starts "eldest etcd" with temporary files in dir.
func clusterOf(t *testing.T, dir string, args ...string) *clitest.Process {
	return nowhere(t).with("TMPDIR=" + dir).start(append([]string{"etcd"}, args...)...)
}

func TestEtcdPrintsJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := clusterOf(t, dir, "--members", "3", "--json")
	got := parse[struct {
		Endpoints []string
		Members   []map[string]string
	}](t, p.Line())
	require.Len(t, got.Endpoints, 3)
	require.Len(t, got.Members, 3)
	for i, m := range got.Members {
		for _, field := range []string{"name", "id", "client_url", "peer_url", "data_dir"} {
			require.NotEmpty(t, m[field], field)
		}
		require.Equal(t, got.Endpoints[i], m["client_url"])
		require.Eventually(t, func() bool { // a busy machine may elect another leader meanwhile
			code, _ := get(t, m["client_url"]+"/health")
			return code == http.StatusOK
		}, patience, 10*time.Millisecond)
	}
	p.Signal(os.Interrupt)
	p.Exits(cli.ExitOK)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the temporary data is left")
}

func TestEtcdPrintsTableAndShellLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var first string
	for range 2 {
		p := clusterOf(t, dir, "--data-dir", dir)
		var text strings.Builder
		for !strings.Contains(text.String(), "export ELDEST_ENDPOINTS=http://127.0.0.1:") {
			line := p.Line()
			require.NotEmpty(t, line, p.Errors())
			text.WriteString(line)
		}
		require.Contains(t, text.String(), "CLIENT URL")
		if first == "" {
			first = text.String()
		}
		require.Equal(t, first, text.String(), "the same directory is not the same cluster")
		p.Signal(syscall.SIGTERM)
		p.Exits(cli.ExitOK)
	}
}
