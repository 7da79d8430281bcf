package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
)

func TestBadUsageOfBench(t *testing.T) {
	// Bad usage must use neither these endpoints nor the temporary directory.
	t.Setenv("ELDEST_ENDPOINTS", "127.0.0.1:1")
	t.Setenv("TMPDIR", t.TempDir())
	for line, reason := range map[string]string{
		"handovr":                                   `did you mean "handover"?`,
		"nonsense":                                  "there are ",
		"handover surplus":                          "--json",
		"handover --json a b":                       "at most 1 arg",
		"handover --json=":                          "--json FILE",
		"handover --html=":                          "--html",
		"handover --json --html -":                  "stdout",
		"handover --json /no/such/dir/x":            "/no/such/dir",
		"handover --html /no/such/dir/x":            "/no/such/dir",
		"handover --members 2":                      "1, 3 or 5",
		"handover --rounds 0":                       "--rounds 0: want more than 0",
		"handover --warmup -1":                      "0 or more",
		"handover --load 0":                         "--load 0: want more than 0",
		"handover --processes -1":                   "--processes -1: want more than 0",
		"handover --processes 1001":                 "--processes 1001: want at most 1000",
		"handover --command-timeout 0s":             "--command-timeout 0s: want more than 0",
		"handover --size 3":                         "unknown flag: --size",
		"handover --data /no/such/dir":              "memory, disk or a directory",
		"handover --user x:secret":                  "--endpoints",
		"handover --endpoints h:1 --members 3":      "--members",
		"handover --endpoints h:1 --data disk":      "--data",
		"handover --endpoints h":                    `"h"`,
		"handover --endpoints h:1 --namespace x/":   "--namespace=",
		"handover --endpoints h:1 --cert x":         "--key",
		"handover --endpoints h:1 --password x":     "--user",
		"handover --endpoints h:1 --cacert /no/ca":  "/no/ca",
		"all --size 0":                              "--size 0: want 1 or more",
		"all --ttl 10ms":                            "--ttl 10ms: want whole seconds, 1s or more",
		"all --contender nobody":                    "eldest, concurrency, herd, floor",
		"cut --ttl 1500ms":                          "whole seconds",
		"crash --regime none":                       `no regime "none"`,
		"suspensions --for 0s":                      "--for",
		"guard --for 1s":                            "unknown flag: --for",
		"drain --size 1":                            "2 or more",
		"forwarding --contender eldest":             "direct, forwarded, floor",
		"list surplus":                              "surplus",
		"report":                                    "the file is missing",
		"report bench_test.go":                      "not a benchmark's JSON",
		"report --json=file /no/such/file":          "--json",
		"handover --endpoints h:1 --dial-timeout 0": "--dial-timeout",
	} {
		t.Run(line, func(t *testing.T) {
			code, stdout, stderr := runLine(t, append([]string{"bench"}, strings.Fields(line)...)...)
			require.Equal(t, cli.ExitUsage, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, reason)
			require.Contains(t, stderr, "--help")
			require.NotContains(t, stderr, "secret")
		})
	}
}

func TestBenchListsItsScenarios(t *testing.T) {
	for _, line := range []string{"bench", "bench list", "bench --help", "bench list --json", "--json bench"} {
		code, stdout, stderr := runLine(t, strings.Fields(line)...)
		require.Equal(t, cli.ExitOK, code, stderr)
		for _, s := range bench.Scenarios() {
			require.Contains(t, stdout, s.Name)
			require.Contains(t, stdout, s.Summary)
		}
		require.NotContains(t, stdout, " worker", "that is for programs")
		if strings.Contains(line, "json") {
			require.True(t, json.Valid([]byte(stdout)))
		}
	}
	for _, s := range bench.Scenarios() {
		code, stdout, _ := runLine(t, "bench", s.Name, "--help")
		require.Equal(t, cli.ExitOK, code)
		require.Contains(t, stdout, "--json FILE")
		require.NotContains(t, stdout, "%!", "%s: a value that does not fit the text", s.Name)
		for _, term := range slices.Concat(s.Contenders, s.Regimes, s.Metrics) {
			require.Contains(t, stdout, "\n  "+term.Name+" ", "%s does not explain it", s.Name)
		}
		require.Equal(t, len(s.Defaults.Sizes) > 0, strings.Contains(stdout, "--size ints"))
		require.Equal(t, len(s.Defaults.TTLs) > 0, strings.Contains(stdout, "--ttl TTLs"))
		require.Equal(t, s.Defaults.Load > 0, strings.Contains(stdout, "--load int"))
		require.Equal(t, s.Defaults.For > 0, strings.Contains(stdout, "--for duration"))
		require.Equal(t, !s.InProcess, strings.Contains(stdout, "--processes int"))
	}
}

// whole has all options.
var whole = bench.Scenario{Name: "whole", Defaults: bench.Options{
	Rounds: 7, Warmup: 2, Sizes: []int{10, 20}, TTLs: []time.Duration{2 * time.Second}, Load: 300, For: time.Second,
}}

// settled parses a command line of the scenario whole.
func settled(t *testing.T, args ...string) (cmd *cobra.Command, f *benchFlags, err error) {
	t.Helper()
	root := newRootCmd()
	cmd = &cobra.Command{Use: "scenario", Args: cobra.MaximumNArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		err = f.settle(cmd, args)
		return nil
	}}
	f = addBenchFlags(cmd, whole.Defaults, []bench.Scenario{whole})
	root.AddCommand(cmd)
	root.SetArgs(append([]string{"scenario"}, args...))
	require.NoError(t, root.Execute())
	return cmd, f, err
}

func TestFilesOfBench(t *testing.T) {
	for line, want := range map[string][2]string{
		"":                            {"", ""},
		"--json --rounds 3":           {"-", ""},
		"--json=a.json":               {"a.json", ""},
		"--html b.html --json a.json": {"a.json", "b.html"},
		"--json a.json --html -":      {"a.json", "-"},
		"--json a.json --size 1,2":    {"a.json", ""},
	} {
		_, f, err := settled(t, strings.Fields(line)...)
		require.NoError(t, err, line)
		require.Equal(t, want, [2]string{f.json, f.html}, line)
	}
}

func TestOptionsOfBench(t *testing.T) {
	t.Setenv("ELDEST_ENDPOINTS", "production:2379")
	_, f, err := settled(t)
	require.NoError(t, err)
	require.Zero(t, f.options(whole), "what is not given is the scenario's default")
	require.False(t, f.remote, "the environment names no cluster to measure on")

	_, f, err = settled(t, "--rounds", "3", "--warmup", "0", "--contender", "eldest,floor", "--contender", "herd",
		"-n", "1,2", "--size", "3", "--ttl", "2s,5s", "--load", "9", "--processes", "4", "--for", "3s")
	require.NoError(t, err)
	few := bench.Options{Rounds: 3, Warmup: -1, Contenders: []string{"eldest", "floor", "herd"}}
	require.Equal(t, few, f.options(bench.Scenario{InProcess: true}), "what means nothing to a scenario is left out")
	few.Processes = 4
	require.Equal(t, few, f.options(bench.Scenario{}))
	few.Sizes, few.TTLs, few.Load, few.For = []int{1, 2, 3}, []time.Duration{2 * time.Second, 5 * time.Second}, 9, 3*time.Second
	require.Equal(t, few, f.options(whole))
}

func TestCommandLineKeepsSecrets(t *testing.T) {
	cmd, f, err := settled(t, "--endpoints", "a:1,b:2", "--user", "me:secret", "--rounds", "3", "-n", "1,2", "--json", "x")
	require.NoError(t, err)
	require.True(t, f.remote)
	require.Equal(t, "eldest scenario --endpoints a:1,b:2 --user me --rounds 3 --size 1,2", commandLine(cmd))
	cmd, _, err = settled(t, "--endpoints", "a:1", "--user", "me", "--password", "secret")
	require.NoError(t, err)
	require.NotContains(t, commandLine(cmd), "secret")

	// A worker receives the secrets, through a pipe.
	text, err := json.Marshal(f.conn)
	require.NoError(t, err)
	var again connect.Flags
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, []any{f.conn.Endpoints, "me", "secret", f.conn.DialTimeout}, []any{again.Endpoints, again.User, again.Password, again.DialTimeout})
}

func TestProgress(t *testing.T) {
	at := bench.Progress{Contender: "herd", Regime: "queued", N: 2, Done: 30, Total: 120}
	require.Equal(t, "2/9 handover queued n=2 herd  30/120  1:00, about 3:00 left", progressLine("2/9 handover", at, false, time.Minute))
	at.Done, at.Regime, at.N = 1, "", 0
	require.Equal(t, "handover herd  1/120  0:01", progressLine("handover", at, false, time.Second))
	require.Equal(t, "handover: starting", progressLine("handover", bench.Progress{}, false, time.Second))
	at = bench.Progress{Contender: "herd", Regime: "cut", N: 2000, Done: 1, Total: 2}
	require.Equal(t, "cut cut TTL 2s herd  1/2  0:01", progressLine("cut", at, true, time.Second))
	require.Equal(t, "1:02:03", clock(time.Hour+2*time.Minute+3*time.Second))
	require.Equal(t, "äöü", cli.Cut("äöüx", 3))

	// Progress is written to terminals only, unless the flag is set.
	var out bytes.Buffer
	for _, wanted := range []bool{false, true} {
		p := cli.NewProgress(&out, wanted, func(bench.Progress, time.Duration) string { return "x" })
		p.Update(bench.Progress{Done: 1, Total: 2})
		p.Close() // before there was a reason to write
		require.Empty(t, out.String())
	}
}

func TestRefusedConnectionNamesTheFlag(t *testing.T) {
	t.Setenv("ELDEST_ENDPOINTS", "production:2379")
	code, _, stderr := runLine(t, "bench", "guard", "--endpoints", "127.0.0.1:1", "--command-timeout", "3s")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stderr, "check that it is running, --endpoints, and")
}

// A benchmark that a signal ends prints that the clean-up takes a moment.
func TestBenchSaysThatItCleansUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	said, stderr := io.Pipe()
	cmd := &cobra.Command{}
	cmd.SetErr(stderr)
	cmd.SetContext(ctx)
	stop := heedSignals(cmd)
	defer stop()
	require.NoError(t, cmd.Context().Err())
	cancel()
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "cleaning up; signal again to stop at once\n", line)
	require.Error(t, cmd.Context().Err())
}

func TestHopelessRunsFail(t *testing.T) {
	require.NoError(t, hopeless(&bench.Report{}))
	failed := &bench.Report{Scenario: "x", Results: []bench.Result{{Contender: "herd", Errors: 3, Rounds: 3}}}
	require.ErrorContains(t, hopeless(failed), "x: all turns of herd failed")
}

// stored writes runs to a file.
func stored(t *testing.T, scenarios ...string) string {
	t.Helper()
	var runs []*bench.Report
	for _, name := range scenarios {
		x := bench.Result{Contender: "eldest", Metric: "win", Unit: bench.Nanoseconds, Samples: []int64{1e6, 2e6, 3e6}}
		x.Summarize()
		runs = append(runs, &bench.Report{Scenario: name, Results: []bench.Result{x}})
	}
	path := filepath.Join(t.TempDir(), "runs.json")
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, figures.Write(file, runs))
	require.NoError(t, file.Close())
	return path
}

func TestReport(t *testing.T) {
	one, two := stored(t, "handover"), stored(t, "crash", "cut")
	page := filepath.Join(t.TempDir(), "page.html")
	code, stdout, stderr := runLine(t, "bench", "report", one, two, "--html", page)
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "handover")
	require.Contains(t, stdout, "2.00")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, name := range []string{"handover", "crash", "cut"} {
		require.Contains(t, string(text), "<h2>"+name+"</h2>")
	}

	code, stdout, stderr = runLine(t, "bench", "report", one, two, "--json")
	require.Equal(t, cli.ExitOK, code, stderr)
	runs, err := figures.Read(strings.NewReader(stdout))
	require.NoError(t, err)
	require.Len(t, runs, 3)
	dir := filepath.Join(t.TempDir(), "svg")
	code, _, stderr = runLine(t, "bench", "report", one, two, "--svg", dir)
	require.Equal(t, cli.ExitOK, code, stderr)
	require.FileExists(t, filepath.Join(dir, "handover-percentiles-win.svg"))
	code, stdout, _ = runLine(t, "bench", "report", one, "--html", "-")
	require.Equal(t, cli.ExitOK, code)
	require.True(t, strings.HasPrefix(stdout, "<!doctype html>"))
}

// A file is replaced completely, and is unchanged if nothing is written; a pipe is written once.
func TestPapers(t *testing.T) {
	open := func(path string) *paper {
		p, err := openPaper("--json", path, nil)
		require.NoError(t, err)
		return p
	}
	write := func(p *paper, text string) {
		require.NoError(t, p.write(func(w io.Writer) error { _, err := io.WriteString(w, text); return err }))
	}
	path, fresh := filepath.Join(t.TempDir(), "x.json"), filepath.Join(t.TempDir(), "fresh")
	require.NoError(t, open(fresh).close())
	require.NoFileExists(t, fresh)
	require.NoError(t, os.WriteFile(path, []byte("old and long"), 0o600))
	p := open(path)
	requireFile := func(want string) {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	requireFile("old and long")
	write(p, "new")
	requireFile("new")
	require.NoError(t, p.close())

	r, w, err := os.Pipe()
	require.NoError(t, err)
	p = open(fmt.Sprintf("/proc/self/fd/%d", w.Fd()))
	write(p, "one")
	write(p, "two")
	require.NoError(t, p.close())
	require.NoError(t, w.Close())
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "two", string(got))
}
