package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eldestTrace runs "eldest trace" and returns the exit code and the two streams.
func eldestTrace(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	var out, err sheet // a program and its trace write at the same time
	code := run(t.Context(), append([]string{"trace"}, args...), streams{in: strings.NewReader(""), out: &out, err: &err})
	return code, out.String(), err.String()
}

// A scene is told live, as JSON, and drawn, in one run.
func TestTraceScene(t *testing.T) {
	t.Setenv("ELDEST_ENDPOINTS", "127.0.0.1:1") // never from the environment
	svg := filepath.Join(t.TempDir(), "resign.svg")
	code, out, errs := eldestTrace(t, "jobs", "--json", "--candidates", "2", "--svg", svg)
	require.Zero(t, code, errs)
	kinds := map[string]int{}
	for line := range strings.Lines(out) {
		var l struct {
			TimeMS     float64 `json:"time_ms"`
			Kind, Lane string
			Text       string
			Message    json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &l), line)
		require.NotEmpty(t, l.Text)
		kinds[l.Kind]++
		if l.Kind == "request" {
			require.NotEmpty(t, l.Message)
		}
	}
	for _, kind := range []string{"request", "answer", "event", "note"} {
		require.Positive(t, kinds[kind], kind)
	}
	drawing, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.Contains(t, string(drawing), "jobs/L1")
	require.Contains(t, string(drawing), "</svg>")
}

// The normal form alone is on stdout, in text and in JSON.
func TestTraceNormalForm(t *testing.T) {
	code, out, errs := eldestTrace(t, "jobs", "--normalise", "--candidates", "2")
	require.Zero(t, code, errs)
	require.Contains(t, out, "c1 ← LeaseGrant L1 ttl 60s\n")
	require.Contains(t, out, "c2 · leads\n")
	code, out, errs = eldestTrace(t, "jobs", "--normalise", "--candidates", "2", "--json")
	require.Zero(t, code, errs)
	require.Contains(t, out, `{"kind":"answer","lane":"c1","method":"LeaseGrant","text":"LeaseGrant L1 ttl 60s"}`+"\n")
}

// A program's exit code comes back, its output is untouched, and the trace is on stderr.
func TestTraceProgram(t *testing.T) {
	code, out, errs := eldestTrace(t, "jobs", "--", "sh", "-c", "echo to {}; exit 7")
	require.Equal(t, 7, code)
	require.Contains(t, out, "to 127.0.0.1:")
	require.Empty(t, errs)
	code, _, errs = eldestTrace(t, "--", "/nonexistent")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "/nonexistent")
}

// What cannot work is refused, with what to do, before anything is started.
func TestTraceUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"nothing":             {nil, "ELECTION is missing"},
		"two elections":       {[]string{"a", "b"}, "a program goes after --"},
		"no program":          {[]string{"a", "--"}, "the program is missing"},
		"two before the dash": {[]string{"a", "b", "--", "true"}, "one ELECTION before --"},
		"a slash":             {[]string{"a/b"}, "'/'"},
		"an act":              {[]string{"a", "--act", "dance"}, "resign"},
		"an act of a program": {[]string{"a", "--act", "crash", "--", "true"}, "--act is for candidates"},
		"candidates":          {[]string{"a", "--candidates", "1"}, "2 to 20"},
		"a TTL":               {[]string{"a", "--ttl", "-1s"}, "more than 0s"},
		"a contender":         {[]string{"a", "--contender", "x"}, "concurrency"},
		"an endpoint":         {[]string{"a", "--endpoints", "nowhere"}, "--endpoints"},
		"a directory":         {[]string{"a", "--svg", "/"}, "--svg"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := eldestTrace(t, tc.args...)
			require.Equal(t, exitUsage, code)
			require.Empty(t, out)
			require.Contains(t, errs, tc.says)
		})
	}
}

// Each renewal of a campaign is confirmed by a majority: what wraps the client must not
// hide who can be asked (decision 0015).
func TestCampaignAsksTheMajority(t *testing.T) {
	t.Setenv(asCommand, "1")
	for _, command := range []string{"campaign jobs me --ttl 4s", "campaign jobs me --ttl 4s --namespace teams/a/", "run jobs --ttl 4s --grace 100ms -- sleep 60"} {
		stays := filepath.Join(t.TempDir(), "stays")
		require.NoError(t, os.WriteFile(stays, nil, 0o600))
		var errs sheet
		var looking sync.WaitGroup
		looking.Go(func() {
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				if text := errs.String(); strings.Contains(text, "LeaseKeepAlive") && strings.Contains(text, "MemberList") {
					break
				}
			}
			_ = os.Remove(stays)
		})
		script := `while test -e ` + stays + `; do sleep 0.05; done | "$0" ` + command + ` 3<&0`
		run(t.Context(), []string{"trace", "--", "sh", "-c", script, os.Args[0]}, streams{in: strings.NewReader(""), out: io.Discard, err: &errs})
		looking.Wait()
		require.Contains(t, errs.String(), "LeaseKeepAlive", command)
		require.Contains(t, errs.String(), "MemberList", "%s: renewed without asking", command)
	}
}
