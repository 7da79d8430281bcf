package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

func TestBadUsageOfBenchPeers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // bad usage must start nothing
	for line, reason := range map[string]string{
		"surplus":                           "--json",
		"--system none":                     `no system "none"; there are eldest, concurrency, `,
		"--scenario none":                   `no scenario "none"; there are handover, `,
		"--setting none":                    `no settings "none"; there are defaults, shortest`,
		"--rounds 0":                        "--rounds 0: want more than 0",
		"--size -1":                         "--size -1: want more than 0",
		"--for 1ms":                         "want 1s or more",
		"--html=":                           "--html: names no file",
		"--from=":                           "--from: names no file",
		"--json --html -":                   "stdout",
		"--json --html /no/such/dir/x":      "/no/such/dir",
		"--markdown /no/such/dir/x":         "/no/such/dir",
		"--from /no/such/file":              "/no/such/file",
		"--from bench_test.go":              "not the JSON of this benchmark",
		"--from x.json --rounds 3":          "--rounds does not apply",
		"--from x.json --scenario handover": "--scenario does not apply",
	} {
		t.Run(line, func(t *testing.T) {
			code, stdout, stderr := runLine(t, append([]string{"bench", "peers"}, strings.Fields(line)...)...)
			require.Equal(t, cli.ExitUsage, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, reason)
		})
	}
	code, _, stderr := clitest.Line(t, NewPeersRoot(nil, nil), "bench", "peers-server", "none")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, `no server "none"`)
}

func TestHelpOfBenchPeers(t *testing.T) {
	code, help, _ := runLine(t, "bench", "peers", "--help")
	require.Equal(t, cli.ExitOK, code)
	for _, s := range peers.Scenarios {
		require.Contains(t, help, "\n  "+s.Name+" ")
	}
	require.Contains(t, help, strings.Join(peer.Names, ", "))
	_, list, _ := runLine(t, "bench", "--help")
	require.Contains(t, list, "  peers ")
	require.NotContains(t, list, "peers-")
}

// storedPeers writes a report of a run with one result, whose error has a control sequence.
func storedPeers(t *testing.T) (path string) {
	t.Helper()
	r := &peers.Report{
		Time: time.Date(2026, 11, 26, 4, 0, 0, 0, time.UTC), Go: "go1.26", Setup: bench.Setup{OS: "linux", Arch: "amd64", CPUs: 2},
		Systems: []peers.SystemReport{{
			System: peer.System{
				Name: "eldest", Title: "Eldest", Settings: map[string]peer.Setting{peer.Defaults: {Values: []string{"lease of 10 s"}}},
			},
			Version: "etcd 3.7", Nodes: 3,
		}},
		Results: []peers.Result{{Scenario: peers.Crash, None: 1, Limit: time.Minute, Result: bench.Result{
			Contender: "eldest", Regime: peer.Defaults, Metric: peers.Win, Unit: bench.Nanoseconds,
			Samples: []int64{int64(time.Second)}, Errors: 1, FirstError: "red \x1b[31m",
		}}, {Scenario: peers.Rest, Result: bench.Result{
			Contender: "eldest", Regime: peer.Defaults, Metric: peers.Requests, Unit: bench.Counts, Samples: []int64{60},
		}}},
	}
	for i := range r.Results {
		r.Results[i].Summarize()
	}
	path = filepath.Join(t.TempDir(), "stored.json")
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, figures.Encode(file, r))
	require.NoError(t, file.Close())
	return path
}

// A stored report is rendered without a measurement, in all forms.
func TestBenchPeersFrom(t *testing.T) {
	stored, dir := storedPeers(t), t.TempDir()
	html, markdown := filepath.Join(dir, "peers.html"), filepath.Join(dir, "elections.md")
	code, stdout, stderr := runLine(t, "bench", "peers", "--from", stored, "--html", html, "--markdown", markdown)
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "defaults: crash/win (s)")
	require.Contains(t, stdout, "1.00")
	require.Contains(t, stdout, "eldest (defaults), crash/win: 1 of 3 rounds had none within 1m0s")
	require.NotContains(t, stdout, "\x1b")
	for file, text := range map[string]string{html: "Eldest", markdown: "Eldest", filepath.Join(dir, "elections.svg"): "<svg"} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(data), text)
	}
	code, again, stderr := runLine(t, "bench", "peers", "--from", stored, "--json")
	require.Equal(t, cli.ExitOK, code, stderr)
	first, err := peers.Read(strings.NewReader(again))
	require.NoError(t, err)
	require.Equal(t, []int64{int64(time.Second)}, first.Results[0].Samples)
}
