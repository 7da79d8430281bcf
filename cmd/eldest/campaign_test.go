package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	"github.com/stretchr/testify/require"
)

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
	resigns(leader)
	waiter.Exits(cli.ExitFailed)
	require.Contains(t, waiter.Errors(), "writing the events")
	require.Empty(t, etcd.keys())
}
