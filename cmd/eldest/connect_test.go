package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// resolved runs resolve on a command line of connection flags alone.
func resolved(t *testing.T, args ...string) (*connect.Flags, error) {
	t.Helper()
	cmd := &cobra.Command{Use: "fake"}
	cmd.SetIn(strings.NewReader(""))
	conn := connect.AddFlags(cmd)
	require.NoError(t, cmd.ParseFlags(args))
	return conn, conn.Resolve(cmd)
}

func TestFlagsBeatEldestBeatsEtcdctl(t *testing.T) {
	for _, name := range connect.FlagNames {
		for _, prefix := range connect.EnvPrefixes {
			t.Setenv(prefix+strings.ToUpper(strings.ReplaceAll(name, "-", "_")), "")
		}
	}
	conn, err := resolved(t)
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.1:2379"}, conn.Endpoints)
	require.Equal(t, 2*time.Second, conn.DialTimeout)
	require.Equal(t, 5*time.Second, conn.CommandTimeout)

	t.Setenv("ETCDCTL_ENDPOINTS", "a:1, b:2")
	t.Setenv("ETCDCTL_DIAL_TIMEOUT", "7s")
	t.Setenv("ETCDCTL_USER", "root:se:cret")
	t.Setenv("ETCDCTL_INSECURE_SKIP_TLS_VERIFY", "true")
	t.Setenv("ETCDCTL_CACERT", "ca")
	t.Setenv("ETCDCTL_CERT", "crt")
	t.Setenv("ETCDCTL_KEY", "key")
	conn, err = resolved(t)
	require.NoError(t, err)
	require.Equal(t, []string{"a:1", "b:2"}, conn.Endpoints)
	require.Equal(t, 7*time.Second, conn.DialTimeout)
	require.Equal(t, []string{"root", "se:cret"}, []string{conn.User, conn.Password})
	require.Equal(t, []string{"ca", "crt", "key"}, []string{conn.CACert, conn.Cert, conn.Key})
	require.True(t, conn.SkipVerify)

	t.Setenv("ELDEST_ENDPOINTS", "http://c:3")
	t.Setenv("ELDEST_USER", "eldest")
	t.Setenv("ELDEST_PASSWORD", "of eldest")
	t.Setenv("ELDEST_NAMESPACE", "/prod/")
	conn, err = resolved(t)
	require.NoError(t, err)
	require.Equal(t, []string{"http://c:3"}, conn.Endpoints)
	require.Equal(t, []string{"eldest", "of eldest"}, []string{conn.User, conn.Password})
	require.Equal(t, "/prod/", conn.Namespace)
	require.Equal(t, 7*time.Second, conn.DialTimeout, "what ELDEST_ does not say, ETCDCTL_ does")

	conn, err = resolved(t, "--endpoints", "unix:///run/etcd", "--user", "me:too", "--dial-timeout=1s", "--namespace=")
	require.NoError(t, err)
	require.Equal(t, []string{"unix:///run/etcd"}, conn.Endpoints)
	require.Equal(t, []string{"me", "too"}, []string{conn.User, conn.Password})
	require.Equal(t, time.Second, conn.DialTimeout)
	require.Empty(t, conn.Namespace)
	conn, err = resolved(t, "--user", "a:b", "--password", "c")
	require.NoError(t, err)
	require.Equal(t, []string{"a:b", "c"}, []string{conn.User, conn.Password}, "as etcdctl has it")

	t.Setenv("ELDEST_DIAL_TIMEOUT", "soon")
	_, err = resolved(t)
	code, err := cli.ExitCode(err, true)
	require.Equal(t, cli.ExitUsage, code)
	require.ErrorContains(t, err, "ELDEST_DIAL_TIMEOUT")
}

func TestDialEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	conn, err := resolved(t, "--endpoints", "127.0.0.1:1")
	require.NoError(t, err)
	_, err = conn.Dial(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
