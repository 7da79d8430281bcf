package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestBadUsageOfTheElectionCommands(t *testing.T) {
	// Nobody listens there: bad usage is found before anything is sent.
	t.Setenv("ELDEST_ENDPOINTS", "127.0.0.1:"+freePort(t))
	for line, reason := range map[string]string{
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
	} {
		t.Run(line, func(t *testing.T) {
			code, stdout, stderr := runLine(t, strings.Fields(line)...)
			require.Equal(t, exitUsage, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, reason)
			require.Contains(t, stderr, "--help")
			require.NotContains(t, stderr, "secret")
		})
	}
	code, _, stderr := runLine(t, "campaign", "svc", strings.Repeat("v", 1<<20+1))
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "1048577 bytes")
	code, _, stderr = runLine(t, "leader", "")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "no name")
}

func TestHelpOfTheElectionCommands(t *testing.T) {
	for _, command := range []string{"campaign", "observe", "leader", "list", "resign"} {
		code, stdout, stderr := runLine(t, command, "--help")
		require.Equal(t, exitOK, code)
		require.Empty(t, stderr)
		for _, part := range []string{"Usage:", "Examples:\n  eldest " + command, "Exit codes:", "--endpoints", "ELDEST_ENDPOINTS", "ETCDCTL_ENDPOINTS", "--json"} {
			require.Contains(t, stdout, part)
		}
	}
}

// resolved runs resolve on a command line of connection flags alone.
func resolved(t *testing.T, args ...string) (*connFlags, error) {
	t.Helper()
	cmd := &cobra.Command{Use: "fake"}
	cmd.SetIn(strings.NewReader(""))
	conn := addConnFlags(cmd)
	require.NoError(t, cmd.ParseFlags(args))
	return conn, conn.resolve(cmd)
}

func TestFlagsBeatEldestBeatsEtcdctl(t *testing.T) {
	for _, name := range connFlagNames {
		for _, prefix := range envPrefixes {
			t.Setenv(prefix+strings.ToUpper(strings.ReplaceAll(name, "-", "_")), "")
		}
	}
	conn, err := resolved(t)
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.1:2379"}, conn.endpoints)
	require.Equal(t, 2*time.Second, conn.dialTimeout)
	require.Equal(t, 5*time.Second, conn.commandTimeout)

	t.Setenv("ETCDCTL_ENDPOINTS", "a:1, b:2")
	t.Setenv("ETCDCTL_DIAL_TIMEOUT", "7s")
	t.Setenv("ETCDCTL_USER", "root:se:cret")
	t.Setenv("ETCDCTL_INSECURE_SKIP_TLS_VERIFY", "true")
	t.Setenv("ETCDCTL_CACERT", "ca")
	t.Setenv("ETCDCTL_CERT", "crt")
	t.Setenv("ETCDCTL_KEY", "key")
	conn, err = resolved(t)
	require.NoError(t, err)
	require.Equal(t, []string{"a:1", "b:2"}, conn.endpoints)
	require.Equal(t, 7*time.Second, conn.dialTimeout)
	require.Equal(t, []string{"root", "se:cret"}, []string{conn.user, conn.password})
	require.Equal(t, []string{"ca", "crt", "key"}, []string{conn.cacert, conn.cert, conn.key})
	require.True(t, conn.skipVerify)

	t.Setenv("ELDEST_ENDPOINTS", "http://c:3")
	t.Setenv("ELDEST_USER", "eldest")
	t.Setenv("ELDEST_PASSWORD", "of eldest")
	t.Setenv("ELDEST_NAMESPACE", "/prod/")
	conn, err = resolved(t)
	require.NoError(t, err)
	require.Equal(t, []string{"http://c:3"}, conn.endpoints)
	require.Equal(t, []string{"eldest", "of eldest"}, []string{conn.user, conn.password})
	require.Equal(t, "/prod/", conn.namespace)
	require.Equal(t, 7*time.Second, conn.dialTimeout, "what ELDEST_ does not say, ETCDCTL_ does")

	conn, err = resolved(t, "--endpoints", "unix:///run/etcd", "--user", "me:too", "--dial-timeout=1s", "--namespace=")
	require.NoError(t, err)
	require.Equal(t, []string{"unix:///run/etcd"}, conn.endpoints)
	require.Equal(t, []string{"me", "too"}, []string{conn.user, conn.password})
	require.Equal(t, time.Second, conn.dialTimeout)
	require.Empty(t, conn.namespace)
	conn, err = resolved(t, "--user", "a:b", "--password", "c")
	require.NoError(t, err)
	require.Equal(t, []string{"a:b", "c"}, []string{conn.user, conn.password}, "as etcdctl has it")

	t.Setenv("ELDEST_DIAL_TIMEOUT", "soon")
	_, err = resolved(t)
	code, err := exitCode(err, true)
	require.Equal(t, exitUsage, code)
	require.ErrorContains(t, err, "ELDEST_DIAL_TIMEOUT")
}

func TestNamespaceIsADirectory(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	p, led := leading(t, "svc", "--namespace", "/prod/")
	require.Equal(t, []string{"/prod/" + led["key"].(string)}, etcd.standing())
	code, _, _ := runLine(t, "leader", "svc")
	require.Equal(t, exitNobody, code, "another directory")

	t.Setenv("ELDEST_NAMESPACE", "/prod/")
	o := start(t, "observe", "svc", "--json")
	require.Equal(t, led["key"], o.event("leader")["key"])
	code, stdout, _ := runLine(t, "list", "svc", "--json")
	require.Equal(t, exitOK, code)
	require.Equal(t, led["key"], parse[[]object](t, stdout)[0]["key"])
	// As etcdctl shows the key.
	code, _, stderr := runLine(t, "resign", "svc", "/prod/"+led["key"].(string), "--yes")
	require.Equal(t, exitOK, code, stderr)
	p.event("lost")
	p.exits(exitLost)
	o.event("nobody")
}

func TestAuthentication(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	c := etcd.client
	// Each has its own time: checking and keeping a password is hard work for etcd, the more
	// so where every memory access is watched.
	must := func(_ any, err error) { t.Helper(); require.NoError(t, err) }
	must(c.UserAdd(bounded(t), "root", "of root"))
	must(c.UserGrantRole(bounded(t), "root", "root"))
	must(c.RoleAdd(bounded(t), "svc"))
	must(c.RoleGrantPermission(bounded(t), "svc", "svc/", clientv3.GetPrefixRangeEnd("svc/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(c.UserAdd(bounded(t), "member", "of member"))
	must(c.UserGrantRole(bounded(t), "member", "svc"))
	must(c.UserAdd(bounded(t), "stranger", "of stranger"))
	must(c.AuthEnable(bounded(t)))
	t.Setenv("ELDEST_DIAL_TIMEOUT", patience.String())
	t.Setenv("ELDEST_COMMAND_TIMEOUT", patience.String())

	for line, advice := range map[string]string{
		"campaign svc":                          "use --user",
		"leader svc":                            "use --user",
		"campaign svc --user member:wrong":      "check --user and --password",
		"campaign svc --user stranger":          `user "stranger" needs a role`,
		"observe svc --user stranger":           `user "stranger" needs a role`,
		"list svc --user member --namespace x/": `user "member" needs a role`,
	} {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			for i, arg := range args {
				if i > 0 && args[i-1] == "--user" && !strings.Contains(arg, ":") {
					t.Setenv("ELDEST_PASSWORD", "of "+arg)
				}
			}
			code, stdout, stderr := runLine(t, args...)
			require.Equal(t, exitFailed, code, stderr)
			require.Contains(t, stderr, advice)
			require.NotContains(t, stdout+stderr, "of member")
		})
	}
	t.Setenv("ELDEST_USER", "member:of member")
	p, _ := leading(t, "svc", "--ttl", "60s")
	o := start(t, "observe", "svc", "--json")
	o.event("leader")
	code, _, stderr := runLine(t, "resign", "svc", "--yes")
	require.Equal(t, exitOK, code, stderr)
	p.event("lost")
	p.exits(exitLost)
	o.event("nobody")
}

func TestDialEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	conn, err := resolved(t, "--endpoints", "127.0.0.1:"+freePort(t))
	require.NoError(t, err)
	_, err = conn.dial(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
