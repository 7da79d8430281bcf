package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestTransferRefusesBadUsageBeforeItSendsAnything(t *testing.T) {
	t.Setenv("ELDEST_ENDPOINTS", "127.0.0.1:1")
	for line, reason := range map[string]string{
		"transfer":                               "accepts 1 arg(s)",
		"transfer svc":                           "--to is missing",
		"transfer a/b --to x":                    "/",
		"transfer svc --to x --order random":     "want keep or pass-by",
		"transfer svc --to x --patience 0s":      "--patience 0s",
		"transfer svc --to x --patience 2h":      "at most 1h",
		"transfer svc --to x --drain -1s":        "--drain -1s",
		"transfer svc --to x --endpoints nonsen": "--endpoints",
		"transfer svc svc/1f":                    "accepts 1 arg(s)",
	} {
		t.Run(line, func(t *testing.T) {
			code, stdout, stderr := runLine(t, strings.Fields(line)...)
			require.Equal(t, exitUsage, code, stderr)
			require.Contains(t, stderr, reason)
			require.Empty(t, stdout)
		})
	}
}

// partakes waits until all that stand in the election can be asked.
func partakes(t *testing.T, election string, n int) []object {
	t.Helper()
	var rows []object
	require.Eventually(t, func() bool {
		code, stdout, _ := runLine(t, "list", election, "--json")
		if code != exitOK {
			return false
		}
		rows = parse[[]object](t, stdout)
		asks := 0
		for _, row := range rows {
			if row["asks"] == true {
				asks++
			}
		}
		return asks == n
	}, patience, 20*time.Millisecond)
	return rows
}

// values are those of a queue, oldest first.
func values(rows []object) (all []string) {
	for _, row := range rows {
		all = append(all, row["value"].(string))
	}
	return all
}

func TestTransferToTheNextInLineMovesNobodyElse(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	a, first := leading(t, "svc", "A", "--ttl", "30s")
	b, second := waiting(t, "svc", "B", "--ttl", "30s")
	c, third := waiting(t, "svc", "C", "--ttl", "30s", "--no-transfer")
	rows := partakes(t, "svc", 2)
	require.Equal(t, false, rows[2]["asks"])

	code, stdout, stderr := runLine(t, "transfer", "svc", "--to", second["lease"].(string), "--dry-run")
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `^This would hand svc to svc/\S+:\nWHAT +KEY +TOKEN +VALUE\nretires +\S+ +\d+ +A\nleads +\S+ +\d+ +B\n$`, stdout)

	code, stdout, stderr = runLine(t, "transfer", "svc", "--to", second["key"].(string), "--patience", patience.String())
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `^svc/\S+ retired with token \d+\nsvc/\S+ leads with token \d+\n$`, stdout)
	require.Equal(t, second["token"], b.event("leader")["token"])
	retired := a.event("retired")
	require.Equal(t, first["token"], retired["token"])
	require.Contains(t, retired["cause"], second["key"])
	require.Equal(t, true, a.event("resigned")["led"])
	// It stands again, behind all others.
	require.Greater(t, a.event("registered")["token"], third["token"])
	a.event("waiting")
	rows = partakes(t, "svc", 2)
	require.Equal(t, []string{"B", "C", "A"}, values(rows))
	require.Equal(t, third["token"], rows[1]["token"])

	code, stdout, _ = runLine(t, "transfer", "svc", "--to", second["key"].(string), "--patience", patience.String())
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "leads already")

	// It still ends as it should, having led and retired.
	for _, p := range []*process{a, c, b} {
		p.signal(syscall.SIGTERM)
		p.event("resigned")
		p.exits(exitOK)
	}
	require.Empty(t, etcd.keys())
}

func TestTransferToTheLastInLineKeepsTheOrder(t *testing.T) {
	startEtcdProcess(t, "0")
	a, first := leading(t, "svc", "A", "--ttl", "30s")
	b, second := waiting(t, "svc", "B", "--ttl", "30s")
	_, third := waiting(t, "svc", "C", "--ttl", "30s")
	waiting(t, "svc", "D", "--ttl", "30s")
	partakes(t, "svc", 4)
	code, stdout, stderr := runLine(t, "transfer", "svc", "--to", third["key"].(string), "--patience", patience.String(), "--json")
	require.Equal(t, exitOK, code, stderr)
	result := parse[object](t, stdout)
	require.Equal(t, true, result["done"])
	require.Equal(t, first["token"], result["leader"].(map[string]any)["token"])
	require.Equal(t, third["token"], result["now_leads"].(map[string]any)["token"])
	moved := result["moved"].([]any)
	require.Len(t, moved, 2)
	require.Equal(t, second["key"], moved[0].(map[string]any)["key"])
	a.event("retired")

	back := b.event("stepped-back")
	require.Equal(t, second["token"], back["token"])
	require.Equal(t, false, back["led"])
	require.Equal(t, moved[0].(map[string]any)["new_token"], b.event("registered")["token"])
	b.event("waiting")
	require.Equal(t, []string{"C", "B", "D", "A"}, values(partakes(t, "svc", 4)))
}

func TestTransferIsRefused(t *testing.T) {
	startEtcdProcess(t, "0")
	code, _, stderr := runLine(t, "transfer", "svc", "--to", "svc/1f")
	require.Equal(t, exitNobody, code, stderr)
	leading(t, "svc", "A", "--ttl", "30s")
	_, second := waiting(t, "svc", "B", "--ttl", "30s", "--no-transfer")
	_, third := waiting(t, "svc", "C", "--ttl", "30s")
	_, fourth := waiting(t, "svc", "D", "--ttl", "30s", "--no-transfer")
	before := partakes(t, "svc", 2)

	for name, c := range map[string]struct {
		args   []string
		code   int
		reason string
		advice string
	}{
		"unknown": {[]string{"--to", "svc/1f"}, exitNobody, "unknown-target", "eldest list svc"},
		"between": {[]string{"--to", third["key"].(string)}, exitRefused, "between", second["key"].(string)},
		"last":    {[]string{"--to", fourth["key"].(string)}, exitRefused, "between", "eldest resign"},
	} {
		for _, dry := range []string{"--dry-run=true", "--dry-run=false"} {
			t.Run(name+dry, func(t *testing.T) {
				code, stdout, stderr := runLine(t, append([]string{"transfer", "svc", "--json", dry}, c.args...)...)
				require.Equal(t, c.code, code, stderr)
				require.Contains(t, stderr, c.advice)
				result := parse[object](t, stdout)
				require.Equal(t, c.reason, result["reason"])
				require.Equal(t, false, result["done"])
			})
		}
	}
	require.Equal(t, before, stripTTL(before, partakes(t, "svc", 2)), "nobody has moved")
}

// stripTTL makes rows comparable with earlier ones.
func stripTTL(earlier, rows []object) []object {
	for i := range min(len(rows), len(earlier)) {
		rows[i]["ttl_seconds"] = earlier[i]["ttl_seconds"]
	}
	return rows
}

func TestTransferBehindAndPassBy(t *testing.T) {
	startEtcdProcess(t, "0")
	leading(t, "svc", "A", "--ttl", "30s")
	waiting(t, "svc", "B", "--ttl", "30s")
	_, third := waiting(t, "svc", "C", "--ttl", "30s")
	_, fourth := waiting(t, "svc", "D", "--ttl", "30s", "--no-transfer")
	partakes(t, "svc", 3)
	code, _, stderr := runLine(t, "transfer", "svc", "--to", third["key"].(string), "--patience", patience.String())
	require.Equal(t, exitRefused, code)
	require.Contains(t, stderr, "--order pass-by")
	require.Contains(t, stderr, fourth["key"])
	code, stdout, stderr := runLine(t, "transfer", "svc", "--to", third["key"].(string), "--order", "pass-by", "--dry-run")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "In front of those who step back there would then be: "+fourth["key"].(string))
	code, _, stderr = runLine(t, "transfer", "svc", "--to", third["key"].(string), "--patience", patience.String(), "--order", "pass-by")
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, []string{"C", "D", "B", "A"}, values(partakes(t, "svc", 3)))
}

// A leader that does not answer leads on, and its process obeys nothing later.
func TestTransferOfALeaderThatIsStopped(t *testing.T) {
	startEtcdProcess(t, "0")
	a, first := leading(t, "svc", "A", "--ttl", "60s")
	_, second := waiting(t, "svc", "B", "--ttl", "60s")
	partakes(t, "svc", 2)
	a.signal(syscall.SIGSTOP)
	code, stdout, stderr := runLine(t, "transfer", "svc", "--to", second["key"].(string), "--patience", "500ms", "--json")
	require.Equal(t, exitRefused, code, stderr)
	require.Contains(t, stderr, "--patience")
	result := parse[object](t, stdout)
	require.Equal(t, "silent", result["reason"])
	require.Equal(t, false, result["retired"])
	a.signal(syscall.SIGCONT)
	code, stdout, _ = runLine(t, "leader", "svc", "--json")
	require.Equal(t, exitOK, code)
	require.Equal(t, first["token"], parse[object](t, stdout)["token"])
	a.signal(syscall.SIGTERM)
	a.event("resigned") // and not "retired"
	a.exits(exitOK)
}

// A user whose role ends at the election's keys stands and leads, and says what is missing.
func TestCampaignWithoutAMailbox(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	t.Setenv("ELDEST_DIAL_TIMEOUT", patience.String()) // as in TestAuthentication
	t.Setenv("ELDEST_COMMAND_TIMEOUT", patience.String())
	for _, do := range []func() error{
		func() error { _, err := etcd.client.RoleAdd(etcd.bounded(), "svc"); return err },
		func() error {
			_, err := etcd.client.RoleGrantPermission(etcd.bounded(), "svc", "svc/", clientv3.GetPrefixRangeEnd("svc/"), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := etcd.client.UserAdd(etcd.bounded(), "root", "r"); return err },
		func() error { _, err := etcd.client.UserGrantRole(etcd.bounded(), "root", "root"); return err },
		func() error { _, err := etcd.client.UserAdd(etcd.bounded(), "u", "p"); return err },
		func() error { _, err := etcd.client.UserGrantRole(etcd.bounded(), "u", "svc"); return err },
		func() error { _, err := etcd.client.AuthEnable(etcd.bounded()); return err },
	} {
		require.NoError(t, do())
	}
	a, _ := leading(t, "svc", "A", "--ttl", "30s", "--user", "u:p")
	a.says("takes no part in transfers")
	_, second := waiting(t, "svc", "B", "--ttl", "30s", "--user", "u:p")
	code, stdout, stderr := runLine(t, "list", "svc", "--user", "u:p")
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `\?  +A\n`, stdout)
	code, stdout, stderr = runLine(t, "list", "svc", "--user", "root:r", "--json")
	require.Equal(t, exitOK, code, stderr)
	require.Equal(t, false, parse[[]object](t, stdout)[0]["asks"])
	code, _, stderr = runLine(t, "transfer", "svc", "--user", "root:r", "--to", second["key"].(string))
	require.Equal(t, exitRefused, code, stderr)
	require.Contains(t, stderr, "eldest resign svc")
	code, _, stderr = runLine(t, "transfer", "svc", "--user", "u:p", "--to", second["key"].(string))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "/eldest/ask/svc/")
}
