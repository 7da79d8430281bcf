package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// alertsOf returns the names of the alerts in a file.
func alertsOf(t *testing.T, file, pattern string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, file))
	require.NoError(t, err)
	names := make(map[string]int)
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		names[found[1]]++
	}
	return names
}

// promtool tests the rules with scenarios, minute by minute: when each alert fires and when it does
// not. Each alert has both cases.
func TestRulesWithPromtool(t *testing.T) {
	t.Parallel()
	promtool := tool(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = docs
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "promtool %s\n%s", strings.Join(args, " "), out)
		require.Contains(t, string(out), "SUCCESS")
	}
	alerts := alertsOf(t, "alerts.yaml", `- alert: (\w+)`)
	silent := alertsOf(t, "alerts_test.yaml", `alertname: (\w+)}`)
	fires := alertsOf(t, "alerts_test.yaml", `alertname: (\w+)\n\s+exp_alerts:\n`)
	require.NotEmpty(t, alerts)
	for name := range alerts {
		require.Positive(t, fires[name], "%s never fires", name)
		require.Positive(t, silent[name], "%s is never silent", name)
	}
}

// promtool fails for each changed rule: the scenarios detect the change. Two changes of one rule
// are in two rounds.
func TestPromtoolFindsChangedRules(t *testing.T) {
	t.Parallel()
	promtool := tool(t, "promtool")
	rules, err := os.ReadFile(filepath.Join(docs, "alerts.yaml"))
	require.NoError(t, err)
	stories, err := os.ReadFile(filepath.Join(docs, "alerts_test.yaml"))
	require.NoError(t, err)
	type change struct{ alert, was, is string }
	for _, round := range [][]change{
		{
			{"EldestNoLeader", `(eldest_state{state="leading"}) == 0`, `(eldest_state{state="leading"}) < 0`},
			{"EldestSeveralLeaders", `(eldest_state{state="leading"}) > 1`, `(eldest_state{state="leading"}) > 2`},
			{"EldestNobodyThere", "unless count by", "and count by"},
			{"EldestNoSuccessor", "(eldest_queue_length) == 1", "(eldest_queue_length) == 3"},
			{"EldestSlackBelowAThird", "< 1 / 3", "< 1 / 4"},
			{"EldestLeadershipLost", `"session_lost|deposed"`, `"session_lost"`},
			{"EldestFlapping", "[10m:]) > 3", "[10m:]) > 4"},
			{"EldestWatchesBreak", "eldest_watch_restarts_total[10m])) > 5", "eldest_watch_restarts_total[10m])) > 50"},
			{"EldestForeignKeys", "eldest_foreign_keys_total offset 1h) > 0", "eldest_foreign_keys_total offset 1h) > 1"},
			{"EldestSuspended", "eldest_suspensions_total[10m])) > 0", "eldest_suspensions_total[10m])) > 1"},
			{"EldestLeaderEvicted", "eldest_evictions_total[10m])) > 0", "eldest_evictions_total[10m])) > 1"},
			{"EldestHeartbeatsRefused", "eldest_heartbeats_refused == 1", "eldest_heartbeats_refused == 0"},
			{"EldestHooksDropped", "eldest_hooks_dropped_total[10m])) > 0", "eldest_hooks_dropped_total[10m])) > 9999"},
			{"EldestServiceRefuses", "> 0.01", "> 0.1"},
			{"EldestServiceCallsWait", "(eldest_service_calls_in_flight)", `(eldest_service_calls_in_flight{way="served"})`},
			{"EldestServiceBusy", `eldest_service_refusals_total{reason="busy"}[10m])) > 0`, `eldest_service_refusals_total{reason="busy"}[10m])) > 9`},
		},
		{
			{"EldestSlackBelowAThird", `le="0.33"}[5m])) > 0`, `le="0.33"}[5m])) > 2`},
			{"EldestFlapping", "(eldest_leader_token > 0)", "(eldest_leader_token)"},
			{"EldestForeignKeys", "(increase(eldest_foreign_keys_total[1h])) > 0", "(increase(eldest_foreign_keys_total[1h])) > 3"},
			{"EldestNoLeader", "for: 1m\n        labels:\n          severity: critical\n        annotations:\n          summary: Nobody leads", "for: 0m\n        labels:\n          severity: critical\n        annotations:\n          summary: Nobody leads"},
			{"EldestServiceRefuses", "for: 5m", "for: 0m"},
			{"EldestServiceCallsWait", "for: 2m", "for: 0m"},
			{"EldestServiceBusy", `{reason="busy"}`, ""},
		},
		{
			{"EldestServiceRefuses", `{way!="hop"}`, ""},
		},
	} {
		dir, changed := t.TempDir(), string(rules)
		head, rest, found := strings.Cut(string(stories), "\n  - name: ")
		require.True(t, found)
		about := head // with the stories about the round's alerts
		for story := range strings.SplitSeq(rest, "\n  - name: ") {
			if slices.ContainsFunc(round, func(c change) bool { return regexp.MustCompile(`alertname: ` + c.alert + `\b`).MatchString(story) }) {
				about += "\n  - name: " + story
			}
		}
		for _, c := range round {
			require.Equal(t, 1, strings.Count(changed, c.was), c.was)
			changed = strings.ReplaceAll(changed, c.was, c.is)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "alerts.yaml"), []byte(changed), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "alerts_test.yaml"), []byte(about), 0o600))
		cmd := exec.Command(promtool, "test", "rules", "alerts_test.yaml")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		for _, c := range round {
			require.Contains(t, string(out), "alertname: "+c.alert+",", "%q instead of %q was not noticed:\n%s", c.is, c.was, out)
		}
	}
}
