package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
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

// What --help says, on stdout, and of which commands.
func TestHelpSays(t *testing.T) {
	all := []string{"campaign", "observe", "leader", "list", "resign", "run"}
	for part, commands := range map[string][]string{
		"Usage:": all, "Exit codes:": all, "--endpoints": all, "ELDEST_ENDPOINTS": all, "ETCDCTL_ENDPOINTS": all, "--json": all,
		"node NODE at ADDRESS, instance INSTANCE": {"leader", "list", "observe", "resign"},
		"ELDEST_ELECTION":                         {"run"}, "ELDEST_KEY": {"run"}, "ELDEST_TOKEN": {"run"}, "ELDEST_DEADLINE": {"run"},
		"ELDEST_CAUSE": {"run"}, "ELDEST_EXIT_CODE": {"run"}, "ELDEST_PID": {"run"}, "ELDEST_TLS_KEY": {"run"},
		"--grace": {"run"}, "--restart": {"run"}, "--exit-code": {"run"}, "--on-win": {"run"}, "--on-loss": {"run"},
		"--hook-timeout": {"run"}, "--health": {"run"}, "--health-every": {"run"}, "Not guaranteed": {"run", "transfer"},
	} {
		for _, command := range commands {
			code, stdout, stderr := runLine(t, command, "--help")
			require.Equal(t, cli.ExitOK, code)
			require.Empty(t, stderr)
			require.Contains(t, stdout, part, command)
			require.Contains(t, stdout, "Examples:\n  eldest "+command)
			require.NotRegexp(t, `(?m) $`, stdout, command)
			require.NotContains(t, stdout, "run-keeper", "nobody is to use it")
		}
	}
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	require.Contains(t, string(doc), "(campaign, run)")
	require.Contains(t, string(doc), "--exit-code")
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

func TestEtcdPrintsJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := nowhere(t).with("TMPDIR="+dir).start("etcd", "--members", "3", "--json")
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
