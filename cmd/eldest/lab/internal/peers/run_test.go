package peers_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/figures"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/systems"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// options are those of a small run.
func options(t *testing.T, names ...string) peers.Options {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	selected := systems.All()
	if len(names) > 0 {
		selected = slices.DeleteFunc(selected, func(s peer.System) bool { return !slices.Contains(names, s.Name) })
		require.NotEmpty(t, selected)
	}
	return peers.Options{
		Systems: selected, Settings: []string{peer.Shortest}, Rounds: 1, Size: 20, For: time.Second,
		Executable: executable, Dir: t.TempDir(),
	}
}

// again repeats the rounds that have failed, once: one round says nothing about a system on a machine that was
// busy just then.
func again(t *testing.T, o peers.Options, report *peers.Report) {
	t.Helper()
	if len(report.Hopeless()) == 0 {
		return
	}
	t.Logf("repeated: %v", report.Hopeless())
	var systems, scenarios []string
	for _, r := range report.Results {
		if r.Errors > 0 {
			systems, scenarios = append(systems, r.Contender), append(scenarios, r.Scenario)
		}
	}
	o.Systems = options(t, systems...).Systems
	slices.Sort(scenarios)
	o.Scenarios = slices.Compact(scenarios)
	second, err := peers.Run(etcdtest.ContextFor(t, 10*time.Minute), o)
	require.NoError(t, err)
	for i, r := range report.Results {
		if r.Errors == 0 {
			continue
		}
		for _, s := range second.Results {
			if s.Contender == r.Contender && s.Scenario == r.Scenario && s.Metric == r.Metric {
				report.Results[i] = s
			}
		}
	}
}

// One round of each scenario: each metric of each system has a sample, or the report has the reason. The systems are
// Eldest and two that the seed chooses; with ELDEST_ALL, all. There are three runs: scenarios that have one turn at a
// time overlap with those of the other runs.
func TestRun(t *testing.T) {
	t.Parallel()
	const always, slow = "eldest", "nats"
	require.Subset(t, peer.Names, []string{always, slow})
	others := slices.DeleteFunc(slices.Clone(peer.Names), func(name string) bool { return name == always })
	chosen := append([]string{always}, etcdtest.Share(t, 2, others...)...)
	slices.SortFunc(chosen, func(a, b string) int { // the servers of NATS need seconds to replace their leader
		return cmp.Compare(strings.Count(a, slow), strings.Count(b, slow))
	})
	last := len(chosen) - 1
	for _, names := range [][]string{chosen[last:], chosen[last-1 : last], chosen[:last-1]} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			t.Parallel()
			o := options(t, names...)
			o.Dir = "" // in memory, if possible: there may be many servers
			for _, s := range peers.Scenarios {
				o.Scenarios = append(o.Scenarios, s.Name)
			}
			requireMeasured(t, o)
		})
	}
}

// requireMeasured runs, and requires a result or a reason of all that is wanted.
func requireMeasured(t *testing.T, o peers.Options) {
	report, err := peers.Run(etcdtest.ContextFor(t, 10*time.Minute), o)
	require.NoError(t, err)
	require.Empty(t, report.Incomplete)
	for _, s := range report.Skipped {
		if os.Getenv("CI") == "true" {
			t.Errorf("%s was skipped: %s", s.System, s.Reason)
		} else {
			t.Logf("SKIPPED: %s: %s", s.System, s.Reason)
		}
	}
	again(t, o, report)
	require.Empty(t, report.Hopeless())
	reasons := func(system string, keys ...string) (found []string) {
		for _, s := range report.Skipped {
			if s.System == system {
				found = append(found, s.Reason)
			}
		}
		for _, l := range report.Lacks {
			if l.System == system && slices.Contains(keys, l.Scenario) {
				found = append(found, l.Reason)
			}
		}
		return found
	}
	for _, system := range o.Systems {
		for _, s := range peers.Scenarios {
			for _, m := range s.Metrics {
				if !slices.Contains(o.Scenarios, s.Name) {
					continue
				}
				i := slices.IndexFunc(report.Results, func(r peers.Result) bool {
					return r.Contender == system.Name && r.Scenario == s.Name && r.Metric == m.Name
				})
				of := system.Name + ": " + s.Name + "/" + m.Name
				if i < 0 {
					require.NotEmpty(t, reasons(system.Name, s.Name, s.Name+"/"+m.Name), "%s has neither a result nor a reason", of)
					continue
				}
				r := report.Results[i]
				require.Equal(t, 1, r.Rounds+r.None, of)
				require.Equal(t, []string{m.Unit, peer.Shortest}, []string{r.Unit, r.Regime})
				if r.Errors > 0 {
					t.Logf("%s: %s", of, r.FirstError)
				}
				require.Equal(t, r.None > 0, r.Limit > 0)
				for _, v := range r.Samples {
					require.GreaterOrEqual(t, v, int64(0))
				}
				if m.Name == peers.LateWrites && system.Guard != "" && len(r.Samples) > 0 {
					require.Zero(t, r.Max, "%s, although the store has a guard", of)
				}
			}
		}
	}

	var stored, table bytes.Buffer
	require.NoError(t, figures.Encode(&stored, report))
	read, err := peers.Read(&stored)
	require.NoError(t, err)
	require.Equal(t, report.Results, read.Results)
	require.Equal(t, report.Lacks, read.Lacks)
	require.NoError(t, peers.Table(&table, read, story.Style{}))
	require.Contains(t, table.String(), o.Scenarios[0]+"/")
}

// Invalid options start nothing. The command's tests have those that it can be given.
func TestInvalid(t *testing.T) {
	some := options(t, "raft").Systems
	for complaint, o := range map[string]peers.Options{
		"no systems":              {},
		"-1 rounds: want 1 or":    {Systems: some, Rounds: -1},
		"size 100001: want 1 to ": {Systems: some, Size: 100_001},
	} {
		_, err := peers.Run(t.Context(), o)
		require.ErrorIs(t, err, peers.ErrInvalid)
		require.ErrorContains(t, err, complaint)
	}
}

// Whatever ends a run, nothing remains of it: no file, no process. The run has a process of its own, so that the
// processes of other tests are not its children.
func TestInterrupted(t *testing.T) {
	if !etcdtest.Alone(t) {
		return
	}
	o := options(t, "eldest", "raft")
	o.Scenarios, o.Rounds = []string{peers.Handover}, 1000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var once sync.Once
	o.Progress = func(p bench.Progress) {
		if p.Done > 1 { // the first round is complete
			once.Do(cancel)
		}
	}
	report, err := peers.Run(ctx, o)
	require.NoError(t, err)
	require.Equal(t, "interrupted", report.Incomplete)
	require.NotEmpty(t, report.Results)
	require.Empty(t, report.Hopeless(), "interrupted rounds are no errors")
	left, err := os.ReadDir(o.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
	requireNoChildren(t)
}

// requireNoChildren requires that no child process is left, not even as a zombie.
func requireNoChildren(t *testing.T) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	for _, file := range tasks {
		children, err := os.ReadFile(file)
		if err == nil { // the thread may have ended
			require.Empty(t, strings.TrimSpace(string(children)))
		}
	}
}

// A participant that dies is an error of its round, and of no other.
func TestParticipantDies(t *testing.T) {
	t.Parallel()
	o := options(t, "raft")
	o.Systems, o.Scenarios, o.Rounds = []peer.System{mortal}, []string{peers.Rest}, 2
	report, err := peers.Run(etcdtest.ContextFor(t, 2*time.Minute), o)
	require.NoError(t, err)
	r := report.Results[0]
	require.Equal(t, peers.Requests, r.Metric)
	require.Equal(t, 1, r.Errors)
	require.Contains(t, r.FirstError, "the participant's process has ended")
	require.Len(t, r.Samples, 1)
}

// A system that is not installed is skipped, with the reason.
func TestSkipped(t *testing.T) {
	t.Parallel()
	o := options(t, "raft")
	absent := peer.System{Name: "absent", Start: func(context.Context, peer.ServerConfig) (*peer.Servers, error) {
		return nil, peer.ErrMissing
	}}
	o.Systems, o.Scenarios, o.Settings = []peer.System{calm, absent}, []string{peers.Join}, nil
	var skipped []peers.Skipped
	o.Skip = func(s peers.Skipped) { skipped = append(skipped, s) }
	report, err := peers.Run(etcdtest.ContextFor(t, 2*time.Minute), o)
	require.NoError(t, err)
	require.Equal(t, []peers.Skipped{{System: "absent", Reason: "not installed"}}, report.Skipped, "once, with both settings")
	require.Equal(t, report.Skipped, skipped)
	require.Len(t, report.Systems, 1)
	require.Len(t, report.Results, 2)
}

// Servers that do not start are errors of all that is wanted of them, and are not skipped.
func TestNotStarted(t *testing.T) {
	t.Parallel()
	o := options(t, "raft")
	o.Systems = []peer.System{{
		Name: "broken", Lacks: map[string]string{peers.Join: "no queue"},
		Start: func(context.Context, peer.ServerConfig) (*peer.Servers, error) { return nil, errors.New("no port") },
	}}
	o.Scenarios = []string{peers.Handover, peers.Memory, peers.Join}
	report, err := peers.Run(etcdtest.ContextFor(t, 2*time.Minute), o)
	require.NoError(t, err)
	require.Empty(t, report.Skipped)
	require.Equal(t, []string{"handover/win of broken (shortest)", "memory/bytes of broken (shortest)"}, report.Hopeless())
	for _, r := range report.Results {
		require.Equal(t, 1, r.Errors)
		require.Equal(t, "the servers did not start: no port", r.FirstError)
	}
	require.Contains(t, report.Lacks, peers.Lack{System: "broken", Scenario: peers.Join, Reason: "no queue"})
}

// A participant answers what it is asked, also nonsense, and ends with its stdin.
func TestParticipate(t *testing.T) {
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	ended := etcdtest.Go(func() error {
		err := peers.Participate(t.Context(), systems.All(), in, out)
		return err
	})
	dec := json.NewDecoder(answers)
	for request, complaint := range map[string]string{
		`{"id":1,"do":"log"}`:                              "log: no client is open",
		`{"id":2,"do":"open","open":{"system":"nothing"}}`: `no system "nothing"`,
	} {
		_, err := io.WriteString(requests, request+"\n")
		require.NoError(t, err)
		var answer struct{ Error string }
		require.NoError(t, dec.Decode(&answer))
		require.Equal(t, complaint, answer.Error)
	}
	require.NoError(t, requests.Close())
	require.NoError(t, etcdtest.Take(t, ended, "it ends"))
}

func TestForeignJSON(t *testing.T) {
	for _, text := range []string{"", "{}", "[]", `{"time":"2026-01-01T00:00:00Z","results":[{"scenario":"other"}]}`} {
		_, err := peers.Read(strings.NewReader(text))
		require.ErrorIs(t, err, peers.ErrForeign, text)
	}
}
