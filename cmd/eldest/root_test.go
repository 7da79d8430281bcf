package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// An embedded member that stops leaves its idle HTTP connections to peers,
	// both ends of which are in this process, to their timeouts of seconds.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*conn).serve"),
		goleak.IgnoreAnyFunction("net/http.(*connReader).backgroundRead"),
	)
}

// runLine runs a command line to its end.
func runLine(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, streams{in: strings.NewReader(""), out: &out, err: &errs})
	return code, out.String(), errs.String()
}

func TestUsageErrorsExitTwo(t *testing.T) {
	for line, reason := range map[string]string{
		"etdc":                         `did you mean "etcd"?`,
		"nonsense":                     `unknown command "nonsense"`,
		"etcd --no-such-flag":          "unknown flag",
		"etcd surplus":                 "surplus",
		"etcd --members two":           "two",
		"etcd --members 2":             "1, 3 or 5",
		"etcd --heartbeat 0":           "positive",
		"etcd --election 10":           "five heartbeats",
		"etcd --client-port 1,2":       "2 client ports",
		"etcd member --name only-this": "needs",
	} {
		t.Run(line, func(t *testing.T) {
			code, stdout, stderr := runLine(t, strings.Fields(line)...)
			require.Contains(t, stderr, reason)
			require.Empty(t, stdout)
			if !strings.HasPrefix(line, "etcd member") {
				require.Equal(t, exitUsage, code)
				require.Contains(t, stderr, "--help")
			}
		})
	}
}

func TestHelpIsForTheAsking(t *testing.T) {
	for _, line := range []string{"", "--help", "help", "etcd --help"} {
		code, stdout, stderr := runLine(t, strings.Fields(line)...)
		require.Equal(t, exitOK, code)
		require.Contains(t, stdout, "Usage:")
		require.Empty(t, stderr)
	}
}

func TestExitCodes(t *testing.T) {
	failure := errors.New("it failed")
	for name, c := range map[string]struct {
		err    error
		code   int
		stderr string
	}{
		"done":             {nil, exitOK, ""},
		"failed":           {failure, exitFailed, "eldest fake: it failed\n"},
		"coded":            {exit(exitLost, failure), exitLost, "eldest fake: it failed\n"},
		"coded and silent": {exit(exitNobody, nil), exitNobody, ""},
		"wrapped":          {fmt.Errorf("because %w", exit(exitLost, failure)), exitLost, "eldest fake: because it failed\n"},
		"usage":            {usageErrorf("%d is too many", 7), exitUsage, "eldest fake: 7 is too many\nRun 'eldest fake --help' for usage.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			old := commands
			t.Cleanup(func() { commands = old })
			commands = []func() *cobra.Command{func() *cobra.Command {
				return &cobra.Command{Use: "fake", RunE: func(*cobra.Command, []string) error { return c.err }}
			}}
			code, _, stderr := runLine(t, "fake")
			require.Equal(t, c.code, code)
			require.Equal(t, c.stderr, stderr)
		})
	}
}

// startEtcd runs "eldest etcd" and hands its stdout to read; then it ends the
// command as a signal would, and expects exit code 0.
func startEtcd(t *testing.T, read func(*bufio.Reader), args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		c := run(ctx, append([]string{"etcd"}, args...), streams{in: strings.NewReader(""), out: in, err: &stderr})
		_ = in.CloseWithError(io.EOF) // the reader sees the end
		code <- c
	}()
	r := bufio.NewReader(out)
	read(r)
	cancel()
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Empty(t, string(rest))
	require.Equal(t, exitOK, <-code, stderr.String())
}

func TestEtcdPrintsJSON(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	startEtcd(t, func(r *bufio.Reader) {
		line, err := r.ReadBytes('\n')
		require.NoError(t, err)
		var got struct {
			Endpoints []string
			Members   []map[string]string
		}
		require.NoError(t, json.Unmarshal(line, &got))
		require.Len(t, got.Endpoints, 3)
		require.Len(t, got.Members, 3)
		for i, m := range got.Members {
			for _, field := range []string{"name", "id", "client_url", "peer_url", "data_dir"} {
				require.NotEmpty(t, m[field], field)
			}
			require.Equal(t, got.Endpoints[i], m["client_url"])
			require.Eventually(t, func() bool { // a busy machine may elect another leader meanwhile
				resp, err := http.Get(m["client_url"] + "/health")
				return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
			}, patience, 10*time.Millisecond)
		}
		http.DefaultClient.CloseIdleConnections()
	}, "--members", "3", "--json")
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left, "the temporary data is left")
}

func TestEtcdPrintsTableAndShellLine(t *testing.T) {
	dir := t.TempDir()
	var first string
	read := func(r *bufio.Reader) {
		var text strings.Builder
		for !strings.Contains(text.String(), "export ELDEST_ENDPOINTS=http://127.0.0.1:") {
			line, err := r.ReadString('\n')
			require.NoError(t, err)
			text.WriteString(line)
		}
		require.Contains(t, text.String(), "CLIENT URL")
		if first == "" {
			first = text.String()
		}
		require.Equal(t, first, text.String(), "the same directory is not the same cluster")
	}
	startEtcd(t, read, "--data-dir", dir)
	startEtcd(t, read, "--data-dir", dir)
}

func TestVersion(t *testing.T) {
	code, stdout, _ := runLine(t, "--version")
	require.Equal(t, 0, code)
	require.Regexp(t, `^eldest \S+ \(etcd \S+\)\n$`, stdout)
}
