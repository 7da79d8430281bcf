//go:build linux

package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

// long is a TTL that outlives the tests: what a lease would do in the end is not waited for.
const long = "1h"

// beating are the flags of candidates with heartbeats. A busy machine may have them miss some, and
// their leader is suspended for a moment.
var beating = []string{"--ttl", long, "--heartbeat", "1s"}

// both reads events of a process until it has told of the two, in either order.
func both(p *clitest.Process, one, other string) map[string]object {
	p.T.Helper()
	told := make(map[string]object)
	for told[one] == nil || told[other] == nil {
		line := p.Line()
		require.NotEmpty(p.T, line, "no %s and %s: %v", one, other, told)
		o := parse[object](p.T, line)
		told[o["event"].(string)] = o
	}
	return told
}

// A leader that has fallen silent is evicted by who waits, long before its lease expires.
//
// Fails when --heartbeat does not reach the session, and when the eviction is not told.
func TestCampaignEvictsASilentLeader(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	a, won := etcd.leading("svc", beating...)
	b, _ := etcd.waiting("svc", beating...)
	clitest.Halt(t, a.Process)
	told := both(b, "evicted", "leader")
	require.Equal(t, won["key"], told["evicted"]["predecessor"])
	a.Signal(syscall.SIGCONT)
	lost := both(a, "lost", "lost")["lost"]
	require.Equal(t, won["token"], lost["token"])
	require.Contains(t, lost["cause"], "deposed")
	a.Exits(cli.ExitLost)
	resigns(b)
}

// While etcd stands still a leader with heartbeats is suspended; then it leads on with its token, and
// who waits goes on waiting.
//
// Fails when the command ends with the suspension, and when it stands anew.
func TestCampaignLeadsOnAfterASuspension(t *testing.T) {
	t.Parallel()
	etcd := own(t)
	a, won := etcd.leading("svc", beating...)
	b, _ := etcd.waiting("svc", beating...)
	etcd.halt()
	suspended := a.Event("suspended")
	require.Equal(t, won["token"], suspended["token"])
	require.Contains(t, suspended["cause"], "no heartbeat was acknowledged")
	time.Sleep(1500 * time.Millisecond)
	require.NoError(t, etcd.Member(0).Cont())
	require.Equal(t, won["token"], a.Event("resumed")["token"])
	resigns(a)
	require.Greater(t, b.Event("leader")["token"], won["token"])
	resigns(b)
}

// Who is told to end while it is suspended has lost nothing.
func TestCampaignEndsWhileItIsSuspended(t *testing.T) {
	t.Parallel()
	etcd := own(t)
	a, _ := etcd.leading("svc", beating...)
	etcd.halt()
	a.Event("suspended")
	a.Signal(syscall.SIGTERM)
	time.Sleep(100 * time.Millisecond)
	require.NoError(t, etcd.Member(0).Cont())
	resigned := a.Event("resigned")
	require.Equal(t, true, resigned["led"])
	a.Exits(cli.ExitOK)
	require.Empty(t, etcd.standing())
}

// A keeper revokes the lease of a campaign that was killed.
//
// Fails when --keeper does not reach the session: the lease outlives the test.
func TestCampaignWithAKeeper(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	a, _ := etcd.leading("svc", "--ttl", long, "--keeper")
	b, _ := etcd.waiting("svc", "--ttl", long, "--keeper")
	require.NoError(t, a.Process.Kill())
	b.Event("leader")
	keeper := clitest.Children(b.Process.Pid)
	require.Len(t, keeper, 1)
	require.NoError(t, syscall.Kill(keeper[0], syscall.SIGKILL))
	b.Says("the keeper has ended")
	resigns(b)
	require.Zero(t, etcd.leases())
}

// A node, too; and one that is silent is evicted by the node that waits.
func TestServiceNodesWithAKeeperAndHeartbeats(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	flags := append([]string{"--keeper"}, beating...)
	a, _ := etcd.node("a", flags...)
	becomes(a, "leading")
	b, _ := etcd.node("b", flags...)
	becomes(b, "following")
	require.NoError(t, a.Process.Kill())
	becomes(b, "leading")
	c, _ := etcd.node("c", flags...)
	becomes(c, "following")
	clitest.Halt(t, b.Process)
	becomes(c, "leading")
	b.Signal(syscall.SIGCONT)
	becomes(b, "following")
	for _, p := range []*clitest.Process{b, c} {
		p.Signal(syscall.SIGTERM)
		p.Ends(cli.ExitOK)
	}
	require.Zero(t, etcd.leases())
}
