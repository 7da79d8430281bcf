package main

import (
	"syscall"
	"testing"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// values are those of a queue, oldest first.
func values(rows []object) (all []string) {
	for _, row := range rows {
		all = append(all, row["value"].(string))
	}
	return all
}

// A leader that does not answer leads on, and its process obeys nothing later.
func TestTransferOfALeaderThatIsStopped(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	a, first := etcd.leading("svc", "A", "--ttl", "60s")
	_, second := etcd.waiting("svc", "B", "--ttl", "60s")
	etcd.partakes("svc", 2)
	a.Signal(syscall.SIGSTOP)
	code, stdout, stderr := etcd.line("transfer", "svc", "--to", second["key"].(string), "--patience", "500ms", "--json")
	require.Equal(t, cli.ExitRefused, code, stderr)
	require.Contains(t, stderr, "--patience")
	result := parse[object](t, stdout)
	require.Equal(t, "silent", result["reason"])
	require.Equal(t, false, result["retired"])
	a.Signal(syscall.SIGCONT)
	code, stdout, _ = etcd.line("leader", "svc", "--json")
	require.Equal(t, cli.ExitOK, code)
	require.Equal(t, first["token"], parse[object](t, stdout)["token"])
	a.Signal(syscall.SIGTERM)
	a.Event("resigned") // and not "retired"
	a.Exits(cli.ExitOK)
}

// A user whose role ends at the election's keys stands and leads, and says what is missing.
func TestCampaignWithoutAMailbox(t *testing.T) {
	t.Parallel()
	etcd := own(t)
	etcd = etcd.with("ELDEST_DIAL_TIMEOUT=" + patience.String()) // as in TestAuthentication
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
	a, _ := etcd.leading("svc", "A", "--ttl", "30s", "--user", "u:p")
	a.Says("takes no part in transfers")
	_, second := etcd.waiting("svc", "B", "--ttl", "30s", "--user", "u:p")
	code, stdout, stderr := etcd.line("list", "svc", "--user", "u:p", "--dial-timeout", patience.String())
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Regexp(t, `\?  +A\n`, stdout)
	code, stdout, stderr = etcd.line("list", "svc", "--user", "root:r", "--dial-timeout", patience.String(), "--json")
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Equal(t, false, parse[[]object](t, stdout)[0]["asks"])
	code, _, stderr = etcd.line("transfer", "svc", "--user", "root:r", "--dial-timeout", patience.String(), "--to", second["key"].(string))
	require.Equal(t, cli.ExitRefused, code, stderr)
	require.Contains(t, stderr, "eldest resign svc")
	code, _, stderr = etcd.line("transfer", "svc", "--user", "u:p", "--dial-timeout", patience.String(), "--to", second["key"].(string))
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stderr, "/eldest/ask/svc/")
}
