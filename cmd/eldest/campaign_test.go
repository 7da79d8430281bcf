package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestCampaignTellsWhatHappensAndResignsOnSignals(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	a, registered := candidate(t, "svc")
	key, lease, token := registered["key"], registered["lease"], registered["token"]
	require.Equal(t, "svc", registered["election"])
	require.Equal(t, fmt.Sprintf("svc/%s", lease), key)
	require.Positive(t, token)
	require.EqualValues(t, 1, registered["queue"])
	require.NotContains(t, registered, "predecessor")
	led := a.event("leader")

	b, waits := waiting(t, "svc", "B")
	require.Equal(t, key, waits["predecessor"])
	c, behind := candidate(t, "svc", "C")
	require.EqualValues(t, 3, behind["queue"])
	require.Equal(t, waits["key"], behind["predecessor"])
	c.event("waiting")

	host, err := os.Hostname()
	require.NoError(t, err)
	kv, err := etcd.client.Get(etcd.bounded(), key.(string))
	require.NoError(t, err)
	require.Equal(t, host+":"+strconv.Itoa(a.cmd.Process.Pid), string(kv.Kvs[0].Value), "the default value")

	// Before the win, it withdraws: the next one waits for somebody else.
	b.signal(syscall.SIGTERM)
	resigned := b.event("resigned")
	require.Equal(t, false, resigned["led"])
	require.Equal(t, waits["token"], resigned["token"])
	b.exits(exitOK)
	require.Equal(t, key, c.event("waiting")["predecessor"])

	// After it, it resigns.
	a.signal(os.Interrupt)
	resigned = a.event("resigned")
	require.Equal(t, true, resigned["led"])
	for _, field := range []string{"election", "key", "token", "lease"} {
		require.Equal(t, registered[field], led[field], field)
		require.Equal(t, registered[field], resigned[field], field)
	}
	require.NotContains(t, resigned, "cause")
	a.exits(exitOK)
	require.Greater(t, c.event("leader")["token"], token)
	require.Len(t, etcd.standing(), 1)
	c.signal(os.Interrupt)
	c.event("resigned")
	c.exits(exitOK)
	require.Empty(t, etcd.keys())
	require.Zero(t, etcd.leases(), "a lease is left")
	for _, p := range []*process{a, b, c} {
		require.Empty(t, p.errors())
	}
}

func TestCampaignForPeople(t *testing.T) {
	startEtcdProcess(t, "0")
	p := start(t, "campaign", "svc", "me", "--ttl", "30s")
	require.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3}  registered  token \d+  key svc/[0-9a-f]+  queue 1\n$`, p.line())
	require.Regexp(t, `  leader      token \d+  key svc/[0-9a-f]+\n$`, p.line())
	p.signal(syscall.SIGTERM)
	require.Contains(t, p.line(), "  resigned  ")
	p.exits(exitOK)
}

func TestCampaignExitsThreeWhenItLoses(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	for name, remove := range map[string]func(object){
		"key deleted": func(o object) { etcd.delete(o["key"].(string)) },
		"lease revoked": func(o object) {
			id, err := strconv.ParseInt(o["lease"].(string), 16, 64)
			require.NoError(t, err)
			_, err = etcd.client.Revoke(etcd.bounded(), clientv3.LeaseID(id))
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			leader, led := leading(t, "svc")
			waiter, waits := waiting(t, "svc")
			for _, c := range []struct {
				p   *process
				o   object
				led bool
			}{{waiter, waits, false}, {leader, led, true}} {
				remove(c.o)
				lost := c.p.event("lost")
				require.Equal(t, c.led, lost["led"])
				require.NotEmpty(t, lost["cause"])
				require.NotContains(t, lost["cause"], "eldest: ", "the cause, and not the whole story")
				c.p.exits(exitLost)
				require.Contains(t, c.p.errors(), "eldest campaign: ")
			}
			require.Empty(t, etcd.keys())
			require.Zero(t, etcd.leases(), "a lease is left")
		})
	}
}

func TestCampaignExitsThreeWhenEtcdDies(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	leader, _ := leading(t, "svc", "--ttl", "6s")
	waiter, _ := waiting(t, "svc", "--ttl", "6s")
	died := time.Now()
	etcd.signal(syscall.SIGKILL)
	for _, p := range []*process{leader, waiter} {
		jeopardy := p.event("jeopardy")
		require.Positive(t, jeopardy["remaining_ms"])
		require.NotEmpty(t, jeopardy["cause"])
		lost := p.event("lost")
		require.Contains(t, lost["cause"], "session lost")
		at, err := time.Parse(time.RFC3339Nano, lost["time"].(string))
		require.NoError(t, err)
		require.Less(t, at.Sub(died), 16*time.Second, "the TTL is 6 s")
		p.exits(exitLost)
	}
}

func TestCampaignWaitsForEtcd(t *testing.T) {
	port := freePort(t)
	t.Setenv("ELDEST_ENDPOINTS", "127.0.0.1:"+port)
	p := start(t, "campaign", "svc", "--json", "--ttl", "30s")
	p.says("eldest campaign: waiting for etcd at 127.0.0.1:" + port)
	p.says("refused")
	none := start(t, "campaign", "svc", "--json")
	none.says("waiting for etcd")
	none.signal(os.Interrupt)
	none.exits(exitOK)

	startEtcdProcess(t, port)
	p.says("etcd answers")
	p.event("registered")
	p.event("leader")
}

func TestCampaignEndsWhileEtcdIsSilent(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	patientOne, _ := leading(t, "svc", "--ttl", "60s", "--command-timeout", "1m")
	hastyOne, _ := leading(t, "other", "--ttl", "60s", "--command-timeout", "300ms")
	etcd.halt()

	hastyOne.signal(os.Interrupt)
	require.Equal(t, true, hastyOne.event("resigned")["led"], "the end is told at once, not when etcd confirms it")
	hastyOne.exits(exitOK)
	require.Contains(t, hastyOne.errors(), "did not confirm")

	patientOne.signal(os.Interrupt)
	patientOne.event("resigned")
	// A signal within the moment that it takes to give signals their default
	// meaning back is lost, so more than one may be needed.
	require.Eventually(t, func() bool {
		select {
		case <-patientOne.done:
			return true
		default:
			_ = patientOne.cmd.Process.Signal(os.Interrupt)
			return false
		}
	}, patience, 20*time.Millisecond, "the second signal did not end it")
	status := patientOne.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, status.Signaled(), status)
}

func TestCampaignLeavesWhenNobodyReadsItsEvents(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	leader, _ := leading(t, "svc")
	waiter, _ := waiting(t, "svc")
	// The reader of this process holds the pipe open; a deadline takes it off.
	require.NoError(t, waiter.stdout.SetReadDeadline(time.Now()))
	for range waiter.lines {
		t.Error("unexpected line")
	}
	require.NoError(t, waiter.stdout.Close())
	leader.signal(os.Interrupt)
	leader.event("resigned")
	leader.exits(exitOK)
	waiter.exits(exitFailed)
	require.Contains(t, waiter.errors(), "writing the events")
	require.Empty(t, etcd.keys())
}

func TestCampaignTellsOfForeignKeys(t *testing.T) {
	etcd := startEtcdProcess(t, "0")
	_, err := etcd.client.Put(etcd.bounded(), "svc/not\x1ba-candidate", "")
	require.NoError(t, err)
	p, _ := leading(t, "svc")
	p.says(`"svc/not\x1ba-candidate" is no candidate's`)
}
