package main

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// proclaim puts a new value under a candidate's key, as the candidate would.
func (e *etcdProcess) proclaim(o object, value string) {
	e.t.Helper()
	id, err := strconv.ParseInt(o["lease"].(string), 16, 64)
	require.NoError(e.t, err)
	_, err = e.client.Put(e.bounded(), o["key"].(string), value, clientv3.WithLease(clientv3.LeaseID(id)))
	require.NoError(e.t, err)
}

func TestObserveTellsLeadersValuesNobodyAndUnknown(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	o := start(t, "observe", "svc", "--json")
	nobody := o.event("nobody")
	require.Equal(t, "svc", nobody["election"])
	for _, field := range []string{"key", "token", "value", "reason"} {
		require.NotContains(t, nobody, field)
	}

	a, led := leading(t, "svc", "one")
	leader := o.event("leader")
	require.Equal(t, "one", leader["value"])
	for _, field := range []string{"key", "token", "lease"} {
		require.Equal(t, led[field], leader[field], field)
	}
	b, waits := waiting(t, "svc", "") // a waiter is no event, and its value is empty

	etcd.proclaim(led, "\xff\x00")
	value := o.event("value")
	require.Equal(t, led["token"], value["token"])
	require.Equal(t, "/wA=", value["value_base64"])
	require.Contains(t, value, "value")

	a.signal(os.Interrupt)
	a.event("resigned")
	a.exits(exitOK)
	next := o.event("leader")
	require.Equal(t, waits["token"], next["token"])
	require.Equal(t, "", next["value"])
	require.NotContains(t, next, "value_base64")
	b.event("leader")

	etcd.halt()
	unknown := o.event("unknown")
	require.NotEmpty(t, unknown["reason"])
	require.NotContains(t, unknown, "token")
	etcd.signal(syscall.SIGCONT)
	// What comes back is what etcd says now: b has lost its lease or has not.
	require.Regexp(t, `"event":"(leader|nobody)"`, o.line())

	o.signal(syscall.SIGTERM)
	o.over()
	require.Equal(t, exitOK, o.cmd.ProcessState.ExitCode(), o.errors())
}

func TestObserveForPeopleIsSafeForTerminals(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	o := start(t, "observe", "s\x1bvc")
	require.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3}  nobody *\n$`, o.line())
	p := start(t, "campaign", "s\x1bvc", "\x1b]0;title\x07\nforged  leader  line\u202e", "--ttl", "30s")
	registered := p.line()
	require.NotContains(t, registered, "\x1b")
	require.Contains(t, registered, `"s\x1bvc/`)
	line := o.line()
	require.Contains(t, line, `"\x1b]0;title\a\nforged  leader  line\u202e"`)
	require.NotContains(t, line, "\x1b")

	for _, command := range []string{"leader", "list"} {
		code, stdout, _ := runLine(t, command, "s\x1bvc")
		require.Equal(t, exitOK, code)
		require.NotContains(t, stdout, "\x1b")
		require.Contains(t, stdout, `"\x1b]0;title\a`)
	}
	code, stdout, stderr := runLine(t, "resign", "s\x1bvc", "--yes")
	require.Equal(t, exitOK, code)
	require.NotContains(t, stdout+stderr, "\x1b")
	require.Contains(t, o.line(), "nobody")
	require.Empty(t, etcd.standing())
}

func TestObserveWaitsForEtcd(t *testing.T) {
	port := freePort(t)
	t.Setenv("ELDEST_ENDPOINTS", "127.0.0.1:"+port)
	o := start(t, "observe", "svc", "--json")
	require.Contains(t, o.event("unknown")["reason"], "refused")
	startEtcdProcess(t, port)
	o.event("nobody")
	o.signal(os.Interrupt)
	o.exits(exitOK)
}
