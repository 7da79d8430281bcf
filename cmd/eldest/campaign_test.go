package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestCampaignTellsWhatHappensAndResignsOnSignals(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	a, registered := etcd.candidate("svc")
	key, lease, token := registered["key"], registered["lease"], registered["token"]
	require.Equal(t, "svc", registered["election"])
	require.Equal(t, fmt.Sprintf("svc/%s", lease), key)
	require.Positive(t, token)
	require.EqualValues(t, 1, registered["queue"])
	require.NotContains(t, registered, "predecessor")
	led := a.Event("leader")

	b, waits := etcd.waiting("svc", "B")
	require.Equal(t, key, waits["predecessor"])
	c, behind := etcd.candidate("svc", "C")
	require.EqualValues(t, 3, behind["queue"])
	require.Equal(t, waits["key"], behind["predecessor"])
	c.Event("waiting")

	host, err := os.Hostname()
	require.NoError(t, err)
	kv, err := etcd.client.Get(etcd.bounded(), key.(string))
	require.NoError(t, err)
	require.Equal(t, host+":"+strconv.Itoa(a.Process.Pid), string(kv.Kvs[0].Value), "the default value")

	// Before the win, it withdraws: the next one waits for somebody else.
	b.Signal(syscall.SIGTERM)
	resigned := b.Event("resigned")
	require.Equal(t, false, resigned["led"])
	require.Equal(t, waits["token"], resigned["token"])
	b.Exits(cli.ExitOK)
	require.Equal(t, key, c.Event("waiting")["predecessor"])

	// After it, it resigns.
	a.Signal(os.Interrupt)
	resigned = a.Event("resigned")
	require.Equal(t, true, resigned["led"])
	for _, field := range []string{"election", "key", "token", "lease"} {
		require.Equal(t, registered[field], led[field], field)
		require.Equal(t, registered[field], resigned[field], field)
	}
	require.NotContains(t, resigned, "cause")
	a.Exits(cli.ExitOK)
	require.Greater(t, c.Event("leader")["token"], token)
	require.Len(t, etcd.standing(), 1)
	c.Signal(os.Interrupt)
	c.Event("resigned")
	c.Exits(cli.ExitOK)
	require.Empty(t, etcd.keys())
	require.Zero(t, etcd.leases(), "a lease is left")
	for _, p := range []*clitest.Process{a, b, c} {
		require.Empty(t, p.Errors())
	}
}

func TestCampaignForPeople(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	p := etcd.start("campaign", "svc", "me", "--ttl", "30s")
	require.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3}  registered  token \d+  key svc/[0-9a-f]+  queue 1\n$`, p.Line())
	require.Regexp(t, `  leader      token \d+  key svc/[0-9a-f]+\n$`, p.Line())
	p.Signal(syscall.SIGTERM)
	require.Contains(t, p.Line(), "  resigned  ")
	p.Exits(cli.ExitOK)
}

func TestCampaignExitsThreeWhenItLoses(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
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
			etcd := etcd.of(t)
			leader, led := etcd.leading("svc")
			waiter, waits := etcd.waiting("svc")
			for _, c := range []struct {
				p   *clitest.Process
				o   object
				led bool
			}{{waiter, waits, false}, {leader, led, true}} {
				remove(c.o)
				lost := c.p.Event("lost")
				require.Equal(t, c.led, lost["led"])
				require.NotEmpty(t, lost["cause"])
				require.NotContains(t, lost["cause"], "eldest: ", "the cause, and not the whole story")
				c.p.Exits(cli.ExitLost)
				require.Contains(t, c.p.Errors(), "eldest campaign: ")
			}
			require.Empty(t, etcd.keys())
			require.Zero(t, etcd.leases(), "a lease is left")
		})
	}
}

func TestCampaignExitsThreeWhenEtcdDies(t *testing.T) {
	t.Parallel()
	etcd := own(t)
	leader, _ := etcd.leading("svc", "--ttl", "6s")
	waiter, _ := etcd.waiting("svc", "--ttl", "6s")
	died := time.Now()
	require.NoError(t, etcd.Member(0).Kill())
	for _, p := range []*clitest.Process{leader, waiter} {
		jeopardy := p.Event("jeopardy")
		require.Positive(t, jeopardy["remaining_ms"])
		require.NotEmpty(t, jeopardy["cause"])
		lost := p.Event("lost")
		require.Contains(t, lost["cause"], "session lost")
		at, err := time.Parse(time.RFC3339Nano, lost["time"].(string))
		require.NoError(t, err)
		require.Less(t, at.Sub(died), 16*time.Second, "the TTL is 6 s")
		p.Exits(cli.ExitLost)
	}
}

func TestCampaignWaitsForEtcd(t *testing.T) {
	t.Parallel()
	etcd := later(t)
	p := etcd.start("campaign", "svc", "--json", "--ttl", "30s")
	p.Says("eldest campaign: waiting for etcd at " + etcd.endpoint)
	p.Says("refused")
	none := etcd.start("campaign", "svc", "--json")
	none.Says("waiting for etcd")
	none.Signal(os.Interrupt)
	none.Exits(cli.ExitOK)

	etcd.restart()
	p.Says("etcd answers")
	p.Event("registered")
	p.Event("leader")
}

func TestCampaignEndsWhileEtcdIsSilent(t *testing.T) {
	t.Parallel()
	etcd := own(t)
	patientOne, _ := etcd.leading("svc", "--ttl", "60s", "--command-timeout", "1m")
	hastyOne, _ := etcd.leading("other", "--ttl", "60s", "--command-timeout", "300ms")
	etcd.halt()

	hastyOne.Signal(os.Interrupt)
	require.Equal(t, true, hastyOne.Event("resigned")["led"], "the end is told at once, not when etcd confirms it")
	hastyOne.Exits(cli.ExitOK)
	require.Contains(t, hastyOne.Errors(), "did not confirm")

	patientOne.Signal(os.Interrupt)
	patientOne.Event("resigned")
	// A signal within the moment that it takes to give signals their default
	// meaning back is lost, so more than one may be needed.
	require.Eventually(t, func() bool {
		select {
		case <-patientOne.Done:
			return true
		default:
			_ = patientOne.Process.Signal(os.Interrupt)
			return false
		}
	}, patience, 20*time.Millisecond, "the second signal did not end it")
	status := patientOne.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, status.Signaled(), status)
}

func TestCampaignLeavesWhenNobodyReadsItsEvents(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	leader, _ := etcd.leading("svc")
	waiter, _ := etcd.waiting("svc")
	// The reader of this process holds the pipe open; a deadline takes it off.
	require.NoError(t, waiter.Out.SetReadDeadline(time.Now()))
	for range waiter.Lines {
		t.Error("unexpected line")
	}
	require.NoError(t, waiter.Out.Close())
	leader.Signal(os.Interrupt)
	leader.Event("resigned")
	leader.Exits(cli.ExitOK)
	waiter.Exits(cli.ExitFailed)
	require.Contains(t, waiter.Errors(), "writing the events")
	require.Empty(t, etcd.keys())
}

func TestCampaignTellsOfForeignKeys(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	_, err := etcd.client.Put(etcd.bounded(), "svc/not\x1ba-candidate", "")
	require.NoError(t, err)
	p, _ := etcd.leading("svc")
	p.Says(`"svc/not\x1ba-candidate" is no candidate's`)
}
