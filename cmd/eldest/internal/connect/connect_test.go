package connect_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// resolved runs Resolve on a command line of connection flags alone.
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
			t.Setenv(connect.VariableOf(prefix, name), "")
		}
	}
	for _, step := range []struct {
		set  string // in the environment, in addition to that of all steps before
		args string
		want connect.Flags
	}{
		{"", "", connect.Flags{FollowMembers: true, Endpoints: []string{"127.0.0.1:2379"}, DialTimeout: 2 * time.Second, CommandTimeout: 5 * time.Second}},
		{
			"ETCDCTL_ENDPOINTS=a:1, b:2|ETCDCTL_DIAL_TIMEOUT=7s|ETCDCTL_USER=root:se:cret|ETCDCTL_INSECURE_SKIP_TLS_VERIFY=true|ETCDCTL_CACERT=ca|ETCDCTL_CERT=crt|ETCDCTL_KEY=key", "",
			connect.Flags{
				Endpoints: []string{"a:1", "b:2"}, DialTimeout: 7 * time.Second, CommandTimeout: 5 * time.Second,
				User: "root", Password: "se:cret", CACert: "ca", Cert: "crt", Key: "key", SkipVerify: true, FollowMembers: true,
			},
		},
		{
			// ETCDCTL_ applies to what ELDEST_ does not set.
			"ELDEST_ENDPOINTS=http://c:3|ELDEST_USER=eldest|ELDEST_PASSWORD=of eldest|ELDEST_NAMESPACE=/prod/", "",
			connect.Flags{
				Endpoints: []string{"http://c:3"}, DialTimeout: 7 * time.Second, CommandTimeout: 5 * time.Second,
				User: "eldest", Password: "of eldest", CACert: "ca", Cert: "crt", Key: "key", SkipVerify: true, Namespace: "/prod/", FollowMembers: true,
			},
		},
		{
			"", "--endpoints unix:///run/etcd --user me:too --dial-timeout=1s --namespace= --cacert= --cert= --key= --insecure-skip-tls-verify=false",
			connect.Flags{FollowMembers: true, Endpoints: []string{"unix:///run/etcd"}, DialTimeout: time.Second, CommandTimeout: 5 * time.Second, User: "me", Password: "too"},
		},
		{
			// As in etcdctl.
			"", "--endpoints h:1 --user a:b --password c --follow-members=false --dial-timeout=1s --namespace= --cacert= --cert= --key= --insecure-skip-tls-verify=false",
			connect.Flags{Endpoints: []string{"h:1"}, DialTimeout: time.Second, CommandTimeout: 5 * time.Second, User: "a:b", Password: "c"},
		},
	} {
		for variable := range strings.SplitSeq(step.set, "|") {
			if name, value, ok := strings.Cut(variable, "="); ok {
				t.Setenv(name, value)
			}
		}
		got, err := resolved(t, strings.Fields(step.args)...)
		require.NoError(t, err)
		require.EqualExportedValues(t, step.want, *got)
	}
	t.Setenv("ELDEST_DIAL_TIMEOUT", "soon")
	_, err := resolved(t)
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

// A command that waits reports why: at once while etcd does not answer, and after a moment while etcd
// refuses; not at each attempt; and once more when a request has succeeded. It reports nothing about
// requests that no win depends on.
func TestWaiting(t *testing.T) {
	refusals := []error{
		rpctypes.ErrCorrupt, errors.New("raft proposal dropped"), status.Error(codes.Internal, "stream terminated"),
		rpctypes.ErrTooManyRequests, status.Error(codes.Canceled, "by a proxy"),
	}
	silence := []error{status.Error(codes.Unavailable, "connection refused"), context.DeadlineExceeded, &eldest.OpError{Op: "x", Err: context.DeadlineExceeded}}
	for op, of := range map[string]string{
		"open session": "both", "revoke": "none", "register": "both", "remove key": "none", "watch": "none",
		"find predecessor": "refusals", "read queue": "refusals", // the session reports that etcd does not answer
	} {
		for _, err := range append(refusals, silence...) {
			silent := slices.Contains(silence, err)
			t.Run(op+"/"+err.Error(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					testWaiting(t, op, err, silent, of == "both" || of == "refusals" && !silent)
				})
			})
		}
	}
}

func testWaiting(t *testing.T, op string, err error, silent, told bool) {
	var lines []string
	hooks := (&connect.Notice{Conn: &connect.Flags{Endpoints: []string{"h:1"}}, Say: func(line string) { lines = append(lines, line) }}).Hooks()
	attempts := func(many int) {
		for range many {
			if op == "open session" || op == "revoke" {
				hooks.Session.Retrying(lease.RetryingEvent{Op: op, Err: err})
			} else {
				hooks.Candidate.Retrying(election.RetryingEvent{Op: op, Err: err})
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	attempts(int(connect.Passing / (100 * time.Millisecond)))
	require.Len(t, lines, map[bool]int{true: 1}[told && silent], "most is over at once")
	attempts(100)
	hooks.Session.Opened(lease.OpenedEvent{})
	hooks.Candidate.Registered(election.RegisteredEvent{})
	if !told {
		require.Empty(t, lines)
		return
	}
	require.Len(t, lines, 2, "and not at each attempt")
	require.Contains(t, lines[0], "etcd at h:1")
	require.Contains(t, lines[0], connect.Because(err))
	require.Equal(t, silent, strings.Contains(lines[0], "waiting for etcd"), lines[0])
	require.Equal(t, "etcd answers", lines[1])
	attempts(1)
	require.Equal(t, silent, len(lines) == 3, "it begins anew")
}
