package lab

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

func TestBadUsageOfChaos(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for line, reason := range map[string]string{
		"surplus":                               "--json",
		"--json a b":                            "at most 1 arg",
		"--json=":                               "--json FILE",
		"--json /no/such/dir/x":                 "/no/such/dir",
		"--dir=":                                "--dir",
		"--dir /dev/null/x":                     "--dir",
		"--faults kill,kil":                     `unknown fault "kil"`,
		"--members 2":                           "1, 3 or 5",
		"--members 1 --faults cut":              "more than one member",
		"--participants 1":                      "--participants 1: want 2 to 100",
		"--participants 101":                    "2 to 100",
		"--ttl 61s":                             "up to 1m0s",
		"--faults=":                             "names none",
		"--rounds 0":                            "--rounds 0 needs a --duration",
		"--rounds -1":                           "--rounds -1: want 0 or more",
		"--series 0":                            "--series 0: want 1 or more",
		"--ttl 1500ms":                          "whole seconds",
		"--contender herd":                      `"herd"`,
		"--contender concurrency --faults skew": "clock",
		"--contender drop-in --faults silence":  "heartbeats",
		"--ttl -1s":                             "--ttl -1s: want whole seconds",
		"--duration -1s":                        "--duration -1s: want more than 0",
		"--duration 0s":                         "--duration 0s: want more than 0",
		"--without-rule nonsense":               "deadline",
		"--duration 1m --no-such-flag":          "--no-such-flag",
		"--seed -1":                             "--seed",
		"--rounds 1 --members 3 surplus":        "surplus",
	} {
		t.Run(line, func(t *testing.T) {
			code, stdout, stderr := runLine(t, append([]string{"chaos"}, strings.Fields(line)...)...)
			require.Equal(t, cli.ExitUsage, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, reason)
			require.Contains(t, stderr, "--help")
		})
	}
}

func TestChaosListsItsFaults(t *testing.T) {
	for _, line := range []string{"chaos --faults list", "chaos --faults list --json"} {
		code, stdout, stderr := runLine(t, strings.Fields(line)...)
		require.Equal(t, cli.ExitOK, code, stderr)
		for _, i := range chaos.Kinds {
			require.Contains(t, stdout, string(i.Fault))
			require.Contains(t, stdout, i.Summary)
		}
		require.Equal(t, strings.Contains(line, "json"), json.Valid([]byte(stdout)))
	}
	code, stdout, _ := runLine(t, "chaos", "--help")
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, stdout, "Exit codes:")
	require.NotContains(t, stdout, "without-rule", "that is for tests")
}

// found is the report of a run with a violation in its second series.
func found() *chaos.Report {
	round := chaos.Round{Plan: chaos.Plan{Number: 3, Injections: []chaos.Injection{{Fault: chaos.Stop}, {Fault: chaos.Skew}}}}
	v := chaos.Violation{Seed: 8, Round: 3, Faults: []chaos.Fault{chaos.Stop}, Invariant: "leading", At: 4250 * time.Millisecond, Text: "two at once\x1b[2J"}
	return &chaos.Report{
		Config: chaos.Config{Contender: "concurrency", Seed: 7, Members: 5, Participants: 5, TTL: 2 * time.Second}, Rounds: 28, Seconds: 61,
		InvalidBecause: []string{"seed 7 round 1: nobody is leader"},
		Violations:     []chaos.Violation{v}, ByInvariant: map[string]int{"leading": 1},
		Lines:  []chaos.FaultLine{{Fault: chaos.Stop, Injected: 4, TookEffect: 3, Violations: 1}, {Fault: chaos.Delay, Injected: 2, TookEffect: 2}},
		Series: []chaos.Series{{Seed: 7}, {Seed: 8, Rounds: []chaos.Round{round}, Violations: []chaos.Violation{v}, Kept: "kept/concurrency-8"}},
	}
}

func TestTableOfChaos(t *testing.T) {
	var out bytes.Buffer
	f := chaosFlags{others: " --faults stop,skew"}
	require.NoError(t, f.table(&out, found(), story.Style{}))
	text := out.String()
	require.NotContains(t, text, "heartbeats", "that is of Eldest")
	for _, want := range []string{
		"concurrency: 28 rounds, seed 7, 5 members, 5 participants, TTL 2s, 1:01",
		"stop         4            3                       1",
		"INVALID seed 7 round 1: nobody is leader",
		`VIOLATION leading: seed 8 round 3 (stop), 4.250s after the series began: "two at once\x1b[2J"`,
		"repeat with: eldest chaos --seed 8 --rounds 3 --faults stop,skew",
		"history: kept/concurrency-8",
		"1 violation: 1 leading",
	} {
		require.Contains(t, text, want)
	}
	eldests := found()
	eldests.Contender = contender.Eldest
	eldests.Tally = oracle.Tally{Suspended: 4, Resumed: 3, Evicted: 2}
	eldests.Revoked = 1
	out.Reset()
	require.NoError(t, f.table(&out, eldests, story.Style{}))
	require.Contains(t, out.String(), "heartbeats: 4 suspensions, 3 resumptions, 2 evictions; keepers: 1 revocation\n")
}

// The command has all flags of the run, except those that say where its results are written.
func TestCommandOfChaosIsWhatWasAsked(t *testing.T) {
	var f chaosFlags
	fl := pflag.NewFlagSet("chaos", pflag.ContinueOnError)
	f.bind(fl)
	require.NoError(t, fl.Parse(strings.Fields("--faults stop,kill --seed 7 --ttl 2s --dir "+t.TempDir())))
	require.NoError(t, f.settle(fl, nil))
	require.Equal(t, "eldest chaos --seed 7 --rounds 40 --faults stop,kill --ttl 2s", f.command(7, 40, 0))
	require.Equal(t, "eldest chaos --seed 7 --faults stop,kill --ttl 2s --duration 1m0s", f.command(7, 0, time.Minute))
	r := found()
	require.Equal(t, "28 rounds", played(r))
	r.Config.Rounds = 40
	require.Equal(t, "28 of 40 rounds", played(r))
}

func TestVerdictsOfChaos(t *testing.T) {
	require.Contains(t, verdict(&chaos.Report{Rounds: 1}, story.Style{}), "everything held")
	require.Contains(t, verdict(&chaos.Report{}, story.Style{}), "INVALID")
	require.Contains(t, verdict(&chaos.Report{Rounds: 1, InvalidBecause: []string{"x"}}, story.Style{}), "INVALID")
	require.Contains(t, verdict(&chaos.Report{Rounds: 1, Interrupted: true}, story.Style{}), "interrupted")
}

func TestProgressOfChaos(t *testing.T) {
	at := chaos.Progress{Series: 7, Round: 4, Text: "kill(leader) for 1s", Done: 9, Total: 30}
	require.Equal(t, "chaos 10/30  0:18, about 0:42 left  seed 7 round 4: kill(leader) for 1s", chaosLine(at, 18*time.Second, 0))
	at.Total, at.Violations, at.Invalid = 0, 2, 1
	require.Equal(t, "chaos 10  0:18 of 1:00  2 VIOLATIONS  1 invalid  seed 7 round 4: kill(leader) for 1s", chaosLine(at, 18*time.Second, time.Minute))
	require.Equal(t, "chaos: starting", chaosLine(chaos.Progress{}, 0, 0))
}
