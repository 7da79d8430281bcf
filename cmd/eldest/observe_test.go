package main

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// proclaim puts a new value under a candidate's key, as the candidate would.
func (e *etcd) proclaim(o object, value string) {
	e.t.Helper()
	id, err := strconv.ParseInt(o["lease"].(string), 16, 64)
	require.NoError(e.t, err)
	_, err = e.client.Put(e.bounded(), o["key"].(string), value, clientv3.WithLease(clientv3.LeaseID(id)))
	require.NoError(e.t, err)
}

func TestObserveTellsLeadersValuesNobodyAndUnknown(t *testing.T) {
	t.Parallel()
	etcd := own(t)
	o := etcd.start("observe", "svc", "--json")
	nobody := o.Event("nobody")
	require.Equal(t, "svc", nobody["election"])
	for _, field := range []string{"key", "token", "value", "reason"} {
		require.NotContains(t, nobody, field)
	}

	a, led := etcd.leading("svc", "one")
	leader := o.Event("leader")
	require.Equal(t, "one", leader["value"])
	for _, field := range []string{"key", "token", "lease"} {
		require.Equal(t, led[field], leader[field], field)
	}
	b, waits := etcd.waiting("svc", "") // a waiter is no event, and its value is empty

	etcd.proclaim(led, "\xff\x00")
	value := o.Event("value")
	require.Equal(t, led["token"], value["token"])
	require.Equal(t, "/wA=", value["value_base64"])
	require.Contains(t, value, "value")

	a.Signal(os.Interrupt)
	a.Event("resigned")
	a.Exits(cli.ExitOK)
	next := o.Event("leader")
	require.Equal(t, waits["token"], next["token"])
	require.Equal(t, "", next["value"])
	require.NotContains(t, next, "value_base64")
	b.Event("leader")

	etcd.halt()
	unknown := o.Event("unknown")
	require.NotEmpty(t, unknown["reason"])
	require.NotContains(t, unknown, "token")
	require.NoError(t, etcd.Member(0).Cont())
	// What comes back is what etcd says now: b has lost its lease or has not.
	require.Regexp(t, `"event":"(leader|nobody)"`, o.Line())

	o.Signal(syscall.SIGTERM)
	o.Over()
	require.Equal(t, cli.ExitOK, o.ProcessState.ExitCode(), o.Errors())
}

func TestObserveForPeopleIsSafeForTerminals(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	o := etcd.start("observe", "s\x1bvc")
	require.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3}  nobody *\n$`, o.Line())
	p := etcd.start("campaign", "s\x1bvc", "\x1b]0;title\x07\nforged  leader  line\u202e", "--ttl", "30s")
	registered := p.Line()
	require.NotContains(t, registered, "\x1b")
	require.Contains(t, registered, `"s\x1bvc/`)
	line := o.Line()
	require.Contains(t, line, `"\x1b]0;title\a\nforged  leader  line\u202e"`)
	require.NotContains(t, line, "\x1b")

	for _, command := range []string{"leader", "list"} {
		code, stdout, _ := etcd.line(command, "s\x1bvc")
		require.Equal(t, cli.ExitOK, code)
		require.NotContains(t, stdout, "\x1b")
		require.Contains(t, stdout, `"\x1b]0;title\a`)
	}
	code, stdout, stderr := etcd.line("resign", "s\x1bvc", "--yes")
	require.Equal(t, cli.ExitOK, code)
	require.NotContains(t, stdout+stderr, "\x1b")
	require.Contains(t, o.Line(), "nobody")
	require.Empty(t, etcd.standing())
}

func TestObserveWaitsForEtcd(t *testing.T) {
	t.Parallel()
	etcd := later(t)
	o := etcd.start("observe", "svc", "--json")
	require.Contains(t, o.Event("unknown")["reason"], "refused")
	etcd.restart()
	o.Event("nobody")
	o.Signal(os.Interrupt)
	o.Exits(cli.ExitOK)
}
