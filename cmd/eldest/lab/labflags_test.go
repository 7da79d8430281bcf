package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestBadUsageOfLab(t *testing.T) {
	// Bad usage must use neither these endpoints nor the temporary directory.
	t.Setenv("ELDEST_ENDPOINTS", "127.0.0.1:1")
	t.Setenv("TMPDIR", t.TempDir())
	for line, reason := range map[string]string{
		"a b":                                  "surplus argument b: eldest lab [ELECTION]",
		"a/b":                                  "contains '/'",
		"--members 2":                          "--members 2: want 1, 3 or 5",
		"--members x":                          "--members",
		"--participants -1":                    "--participants -1: want 0 to 64",
		"--participants 65":                    "want 0 to 64",
		"--ttl 1s":                             "--ttl 1s: want whole seconds, 2s to 1m0s",
		"--ttl 2500ms":                         "whole seconds",
		"--ttl 61s":                            "whole seconds",
		"--kind raft":                          "--kind raft: want eldest, heartbeats, keeper, concurrency, herd",
		"--kind eldest,":                       "--kind",
		"--kind=":                              "--kind: names none",
		"--for 0s":                             "--for 0s: want more than 0",
		"--for -1s":                            "--for -1s: want more than 0",
		"--listen x":                           `--listen "x": "x" is no port`,
		"--listen 127.0.0.1:99999":             "is no port",
		"--listen=":                            "is no port",
		"--play=":                              "names no file",
		"--play /no/such/file":                 "/no/such/file",
		"--write":                              "--write is for a cluster that --endpoints names",
		"--user root:secret":                   "--user is for a cluster that --endpoints names",
		"--namespace x/":                       "--namespace is for a cluster",
		"--endpoints h:1 --members 3":          "--members does not apply to the cluster of --endpoints",
		"--endpoints h:1 --participants 3":     "--participants does not apply",
		"--endpoints h:1 --ttl 5s":             "--ttl does not apply",
		"--endpoints h:1 --kind eldest":        "--kind does not apply",
		"--endpoints h:1 --play x":             "--play does not apply",
		"--endpoints nonsense":                 `"nonsense"`,
		"--endpoints h:1 --listen 127.0.0.1:x": `"x" is no port`,
		"--endpoints h:1 --namespace x":        `"x/"`,
	} {
		t.Run(line, func(t *testing.T) {
			code, stdout, stderr := runLine(t, append([]string{"lab"}, strings.Fields(line)...)...)
			require.Equal(t, cli.ExitUsage, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, reason)
			require.Contains(t, stderr, "--help")
			require.NotContains(t, stderr, "secret")
		})
	}
}

func TestKindsOfLabAreTakenInTurn(t *testing.T) {
	for kinds, want := range map[string][]feed.Kind{
		"":                          {feed.Eldest, feed.Eldest, feed.Eldest},
		"herd":                      {feed.Herd, feed.Herd, feed.Herd},
		"eldest,concurrency":        {feed.Eldest, feed.Concurrency, feed.Eldest},
		"keeper,herd,eldest,eldest": {feed.Keeper, feed.Herd, feed.Eldest},
	} {
		f := labFlags{participants: 3}
		if kinds != "" {
			f.kinds = strings.Split(kinds, ",")
		}
		require.NoError(t, f.takeKinds())
		require.Equal(t, want, f.box.Start, kinds)
	}
}

func TestScenarioOfLab(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scenario.json")
	taken := func(text string) (*feed.Scenario, error) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		f := labFlags{play: file}
		err := f.takeScenario()
		return f.scenario, err
	}
	scenario, err := taken(`{"name":"n","steps":[{"after_ms":5,"do":"kill","on":"p1"}]}`)
	require.NoError(t, err)
	require.Equal(t, &feed.Scenario{Name: "n", Steps: []feed.Step{{AfterMS: 5, Action: feed.Action{Do: feed.Kill, On: "p1"}}}}, scenario)
	for _, text := range []string{"", "kill p1", `[]`, `{"steps":[{"whom":"p1"}]}`, `{"steps":1}`, "null", `{}`, `{"steps":[{"do":"kill"}]} x`, `{"steps":[{"do":"kill"}]}{}`} {
		require.ErrorContains(t, etcdtest.Err(taken(text)), "is no scenario", text)
	}
	require.ErrorContains(t, etcdtest.Err(taken(strings.Repeat(" ", maxScenario+1))), "more than")
	directory := labFlags{play: t.TempDir()}
	require.ErrorContains(t, directory.takeScenario(), "--play")
}

// The browser is started with the address, and not waited for.
func TestBrowse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	require.Error(t, browse("http://127.0.0.1:1/"), "there is no such program")
	for _, program := range []string{"xdg-open", "open"} {
		script := "#!/bin/sh\necho \"$1\" >'" + dir + "/opened.tmp'\n/bin/mv '" + dir + "/opened.tmp' '" + dir + "/opened'\n" +
			"while [ -e \"$0\" ] && [ ! -e '" + dir + "/closed' ]; do /bin/sleep 0.05; done\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, program), []byte(script), 0o700))
	}
	browsed := etcdtest.Go(func() error { return browse("http://127.0.0.1:1/?token=x") })
	require.NoError(t, etcdtest.Take(t, browsed, "it returns while the browser runs"))
	var opened []byte
	etcdtest.Eventually(t, func() bool {
		var err error
		opened, err = os.ReadFile(filepath.Join(dir, "opened"))
		return err == nil
	}, "the browser is started")
	require.Equal(t, "http://127.0.0.1:1/?token=x\n", string(opened))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "closed"), nil, 0o600))
}
