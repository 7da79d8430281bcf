package main

import (
	"strings"
	"testing"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
)

// Bad usage is refused with exit code 2 and a reason, before anything is sent.
func TestBadUsage(t *testing.T) {
	t.Setenv("ELDEST_ENDPOINTS", "127.0.0.1:1") // nobody listens there
	for line, reason := range map[string]string{
		"etdc":                   `did you mean "etcd"?`,
		"nonsense":               `unknown command "nonsense"`,
		"etcd --no-such-flag":    "unknown flag",
		"etcd surplus":           "surplus",
		"etcd --members two":     "two",
		"etcd --members 2":       "1, 3 or 5",
		"etcd --heartbeat 0":     "positive",
		"etcd --election 10":     "five heartbeats",
		"etcd --client-port 1,2": "2 client ports",

		"campaign":                          "arg",
		"campaign a b c":                    "arg",
		"campaign a/b":                      "namespace",
		"campaign svc --ttl 0s":             "--ttl",
		"campaign svc --ttl -1s":            "--ttl",
		"campaign svc --ttl 25h":            "--ttl",
		"campaign svc --ttl 10":             "--ttl",
		"campaign svc --no-such-flag":       "unknown flag",
		"observe":                           "arg",
		"observe a b":                       "arg",
		"observe a/b":                       "namespace",
		"leader":                            "arg",
		"leader a/b":                        "namespace",
		"list":                              "arg",
		"list a/b":                          "namespace",
		"resign":                            "arg",
		"resign svc key surplus":            "arg",
		"resign a/b --yes":                  "namespace",
		"resign svc":                        "--yes",
		"resign svc --json":                 "--yes",
		"leader svc --endpoints localhost":  `"localhost"`,
		"leader svc --endpoints ftp://h:1":  `"ftp://h:1"`,
		"leader svc --endpoints http://h":   `"http://h"`,
		"leader svc --endpoints h:1,,h:2":   `""`,
		"leader svc --endpoints=":           "--endpoints",
		"leader svc --cert x":               "--key",
		"leader svc --key x":                "--cert",
		"leader svc --cacert /no/such/file": "/no/such/file",
		"leader svc --user name":            "password",
		"leader svc --user :password":       "--user",
		"leader svc --password secret":      "--user",
		"leader svc --namespace prod":       `"prod/"`,
		"leader svc --command-timeout 0s":   "--command-timeout",
		"leader svc --dial-timeout -1s":     "--dial-timeout",
		"leader svc --dial-timeout soon":    "soon",

		"transfer":                               "accepts 1 arg(s)",
		"transfer svc":                           "--to is missing",
		"transfer a/b --to x":                    "/",
		"transfer svc --to x --order random":     "want keep or pass-by",
		"transfer svc --to x --patience 0s":      "--patience 0s",
		"transfer svc --to x --patience 2h":      "at most 1h",
		"transfer svc --to x --drain -1s":        "--drain -1s",
		"transfer svc --to x --endpoints nonsen": "--endpoints",
		"transfer svc svc/1f":                    "accepts 1 arg(s)",

		"run":                                 "after --, a program",
		"run svc":                             "after --, a program",
		"run svc --":                          "after --, a program",
		"run -- true":                         "after --, a program",
		"run svc true":                        "put -- before the program: eldest run svc -- true",
		"run svc other -- true":               "one ELECTION before --, not 2",
		"run svc sh -x":                       "flags of the program go after --",
		"run a/b -- true":                     "/",
		"run svc --ttl 0s -- true":            "--ttl 0s",
		"run svc --ttl 48h -- true":           "--ttl 48h0m0s",
		"run svc --ttl 4s --grace 3s -- true": "use --ttl 6s or more, or --grace 2s or less",
		"run svc --grace -1s -- true":         "want 0s or more",
		"run svc --restart sometimes -- true": "want always, on-failure or never",
		"run svc --hook-timeout 0s --on-win true -- true":              "more than 0s",
		"run svc --hook-timeout 1s -- true":                            "no hook to bound",
		"run svc --health-every 1s -- true":                            "without --health",
		"run svc --health true --health-every 1ms -- true":             "at least 10ms",
		"run svc --on-win= -- true":                                    "--on-win is empty",
		"run svc --on-loss= -- true":                                   "--on-loss is empty",
		"run svc --health= -- true":                                    "--health is empty",
		"run svc -- /no/such/program":                                  "give the path of an executable file",
		"run svc --endpoints nonsense -- true":                         "host:port",
		"run svc --value " + strings.Repeat("x", 1<<20+1) + " -- true": "--value has 1048577 bytes",

		"service surplus":                               "surplus",
		"service --ttl 1s":                              "a TTL of 1s",
		"service --rounds 0":                            "0 rounds",
		"service --seed x":                              "x",
		"service node":                                  "accepts 2 arg(s)",
		"service node shop":                             "accepts 2 arg(s)",
		"service node a/b n1":                           "a/b",
		"service node shop n1 --ttl 0s":                 "--ttl 0s",
		"service node shop n1 --listen 0.0.0.0:0":       "--advertise",
		"service node shop n1 --listen :27301":          "--listen :27301: it must name a host that the other nodes can dial; or use --advertise",
		"service node shop n1 --listen [::]:0":          "--advertise",
		"service node shop n1 --listen 7001":            `--listen "7001"`,
		"service node shop n1 --listen 127.0.0.1:x":     `"x" is no port`,
		"service node shop n1 --listen 127.0.0.1:":      `"" is no port`,
		"service node shop n1 --listen 127.0.0.1:99999": `"99999" is no port`,
		"service node shop n1 --endpoints nonsense":     "--endpoints",
		"service node shop " + strings.Repeat("x", 1e6): "",

		"trace":                       "ELECTION is missing",
		"trace a b":                   "a program goes after --",
		"trace a --":                  "the program is missing",
		"trace a b -- true":           "one ELECTION before --",
		"trace a/b":                   "'/'",
		"trace a --act dance":         "resign",
		"trace a --act crash -- true": "--act is for candidates",
		"trace a --candidates 1":      "2 to 20",
		"trace a --ttl -1s":           "more than 0s",
		"trace a --contender x":       "concurrency",
		"trace a --endpoints nowhere": "--endpoints",
		"trace a --svg /":             "--svg",
	} {
		t.Run(line[:min(len(line), 60)], func(t *testing.T) {
			requireUsage(t, reason, strings.Fields(line)...)
		})
	}
	requireUsage(t, "1048577 bytes", "campaign", "svc", strings.Repeat("v", 1<<20+1))
	requireUsage(t, "no name", "leader", "")
	requireUsage(t, "", "service", "node", "shop", "")
	_, stdout, stderr := runLine(t, "etcd", "member", "--name", "only-this")
	require.Contains(t, stderr, "needs")
	require.Empty(t, stdout)
}

func requireUsage(t *testing.T, reason string, args ...string) {
	t.Helper()
	code, stdout, stderr := runLine(t, args...)
	require.Equal(t, cli.ExitUsage, code, stderr)
	require.Empty(t, stdout)
	require.Contains(t, stderr, reason)
	require.Contains(t, stderr, "--help")
	require.NotContains(t, stderr, "secret")
}
