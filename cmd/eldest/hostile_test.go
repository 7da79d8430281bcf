package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/figures"
	"github.com/eldest-io/eldest/identity"
)

// hostile has one of each kind of what a terminal obeys or a reader falls for: it clears
// the screen, sets the title, turns what follows, hides a letter, is an 8-bit control
// sequence in UTF-8 and a raw one, deletes, and goes back to the beginning of the line.
const hostile = "x\x1b[2J\x1b]0;owned\x07\u202ecod.exe\u200b\u009b31m\x9b31m\x7f\rnobody\u2028"

// requireTame holds that nothing of an output does anything to a terminal.
func requireTame(t *testing.T, where, output string) {
	t.Helper()
	for i, r := range output {
		require.True(t, r == '\n' || r == '\t' || strconv.IsPrint(r), "%s: %q in %q", where, r, output[max(0, i-40):min(len(output), i+40)])
	}
	require.True(t, len(output) == len(strings.ToValidUTF8(output, "")), "%s: %q is not UTF-8", where, output)
}

// All commands that print names, keys or values which others have chosen, on a real etcd.
func TestNamesAndValuesDoNothingToATerminal(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	name := hostile
	node, err := identity.Protobuf{}.Encode(identity.Identity{
		NodeID: strings.ToValidUTF8(hostile, "?"), Address: "\x1b[31mh:1", Instance: "\u202ei", TTL: time.Second,
	})
	require.NoError(t, err)
	observed := map[string]*process{}
	for _, format := range []string{"--json=false", "--json"} {
		observed[format] = start(t, "observe", name, format)
		requireTame(t, "observe "+format, observed[format].line())
	}
	// A foreign key, of which observers and candidates are told.
	_, err = etcd.client.Put(t.Context(), name+"/"+hostile, hostile)
	require.NoError(t, err)

	first := start(t, "campaign", name, hostile, "--ttl", "60s")
	for _, event := range []string{"registered", "leader"} {
		line := first.line()
		require.Contains(t, line, event)
		requireTame(t, "campaign", line)
	}
	second := start(t, "campaign", name, "\u202e\x9b", "--json", "--ttl", "60s", "--http", "0")
	for _, event := range []string{"registered", "waiting"} {
		line := second.line()
		require.Contains(t, line, event)
		requireTame(t, "campaign --json", line)
	}
	at := second.served()
	require.Eventually(t, func() bool { // its observer has heard of the leader
		_, o := role(t, at)
		return o["leader"] == strings.ToValidUTF8(hostile, "\ufffd")
	}, patience, 10*time.Millisecond, "/leader does not name the leader")
	for _, path := range []string{"/", "/healthz", "/leader"} {
		_, body := get(t, at+path)
		requireTame(t, path, body)
	}
	// One whose value is that of a node of a service, with a name to match.
	lease, err := etcd.client.Grant(t.Context(), 60)
	require.NoError(t, err)
	_, err = etcd.client.Put(t.Context(), name+"/"+strconv.FormatInt(int64(lease.ID), 16), string(node))
	require.NoError(t, err)

	for _, line := range [][]string{
		{"leader", name}, {"list", name}, {"leader", name + "?"}, {"resign", name + "?", "--yes"},
		{"resign", name, hostile, "--yes"}, {"resign", name, name + "/" + strconv.FormatInt(int64(lease.ID), 16), "--yes"},
		{"leader", name + "/"}, {"leader", name, "--endpoints", hostile}, {"leader", name, "--endpoints", "127.0.0.1:1", "--user", hostile + ":x", "--dial-timeout", "100ms"},
		{"leader", name, "--cacert", hostile}, {"leader", name, "--" + hostile}, {"leader", name, "--namespace", hostile},
		{"leader", name, "--dial-timeout", hostile}, {hostile}, {"leader", name, hostile}, {"campaign", name, "--ttl", hostile},
		{"bench", hostile}, {"bench", "handover", "--contender", hostile}, {"bench", "report", "/no/such/" + hostile},
		{"demo", hostile}, {"chaos", hostile, hostile}, {"service", hostile}, {"etcd", hostile}, {"etcd", "--members", hostile},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			_, stdout, stderr := runLine(t, append(line[:len(line):len(line)], more...)...)
			requireTame(t, strings.Join(line[:1], " ")+" stdout", stdout)
			requireTame(t, strings.Join(line[:1], " ")+" stderr", stderr)
			require.NotEmpty(t, stdout+stderr, "%q", line)
		}
	}
	// What is escaped means the same to a program.
	_, stdout, _ := runLine(t, "leader", name, "--json")
	leader := parse[object](t, stdout)
	require.Equal(t, strings.ToValidUTF8(hostile, "\ufffd"), leader["value"])
	require.Equal(t, strings.ToValidUTF8(hostile, "\ufffd"), leader["election"])

	// The leader is removed by its lease: the queue, the question and the result are shown.
	code, stdout, stderr := runLine(t, "resign", name, "--yes")
	require.Equal(t, exitOK, code, stderr)
	requireTame(t, "resign", stdout+stderr)
	for _, p := range []*process{first, second} {
		line := p.line() // lost, or leader
		requireTame(t, "campaign", line)
	}
	for format, p := range observed {
		for range 2 { // the first leader, and the next
			line := p.line()
			require.Contains(t, line, "leader", format)
			requireTame(t, "observe "+format, line)
		}
	}
	for _, p := range []*process{first, second, observed["--json"], observed["--json=false"]} {
		p.cmd.Process.Signal(os.Interrupt) //nolint:errcheck // the first has ended by itself
		p.over()
		requireTame(t, "stderr", p.errors())
	}
	require.Contains(t, observed["--json"].errors(), "is no candidate's", "INVALID: nobody was told of the foreign key")
	require.Contains(t, first.errors(), "is no candidate's", "INVALID: nobody was told of the foreign key")
}

// hostileRun is a benchmark's document with such texts wherever there is one.
func hostileRun(text string) figures.Run {
	run := figures.Run{
		Scenario: text, Summary: text, Go: text, Etcd: text, Members: 3, Incomplete: text, Notes: []string{text, "fit"},
		Setup: figures.Setup{Eldest: text, Command: text, CPU: text},
	}
	run.Setup.OS, run.Setup.Arch, run.Setup.Storage = text, text, text
	run.Setup.Load, run.Setup.Written = 1, map[string]bench.Written{text: {PerSecond: 1, Failed: 1}}
	for i, contender := range []string{text, "eldest", "concurrency"} {
		for _, n := range []int{2, 50} {
			run.Results = append(run.Results, figures.Result{Result: bench.Result{
				Contender: contender, Regime: text, N: n, Metric: text, Unit: bench.Nanoseconds, Rounds: 4, Errors: 1, FirstError: text,
				Min: 1, P50: int64(2 + i), P90: 3, P99: 3, Max: 3, Mean: 2, Sum: 6, Samples: []int64{1, int64(2 + i), 3},
			}}, figures.Result{Result: bench.Result{
				Contender: contender, Regime: text, N: n, Metric: "other" + text, Unit: text, Rounds: 1, Samples: []int64{int64(i)},
			}})
		}
	}
	return run
}

// A benchmark's file is anybody's, and so is its name: tables, JSON and errors.
func TestReportsOfOthersDoNothingToATerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), hostile+".json")
	write := func(document any) {
		data, err := json.Marshal(document)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	write(hostileRun(hostile))
	for _, line := range [][]string{{"bench", "report", path}, {"bench", "report", path, "--json"}, {"bench", "report", path, path, "--json"}} {
		code, stdout, stderr := runLine(t, line...)
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, "owned")
		requireTame(t, strings.Join(line[:2], " "), stdout)
		requireTame(t, strings.Join(line[:2], " "), stderr)
	}
	// What was written of it can be read and is the same.
	_, once, _ := runLine(t, "bench", "report", path, "--json")
	require.NoError(t, os.WriteFile(path, []byte(once), 0o600))
	_, twice, _ := runLine(t, "bench", "report", path, "--json")
	require.Equal(t, once, twice)
	for _, bad := range []any{hostile, map[string]any{"scenario": "x", "time": hostile}, map[string]any{"scenario": "x", hostile: 1, "results": hostile}, []string{hostile}} {
		write(bad)
		code, stdout, stderr := runLine(t, "bench", "report", path)
		require.Equal(t, exitUsage, code)
		requireTame(t, "errors", stdout+stderr)
	}
}
