package regressions

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Row 10. The process of the leader is stopped past its TTL and resumes while a reply to a renewal
// is waiting to be read. In other implementations that reply revives the session: its age is
// counted from its reading. In Eldest Holds is false at the first use, whatever has been read by
// then, and the session stays lost.
//
// Fails when deadlines count from the receipt of a reply and replies that are read after the
// deadline are accepted (lease.Session.Holds, lease.Session.step and internal/core each guard
// against it), or when the clock is not read.
func TestRegression10_StoppedPastTheTTL(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	host := c.Host(t)
	leader := startChild(t, order{Endpoints: host.Endpoints(), Election: name, TTL: 3 * time.Second})
	waiter := join(t, c.Client(t), name)
	result := waiter.Queue(t)

	// A reply to a renewal is on its way, in the network, when the process is stopped.
	host.Hold(etcdtest.Outbound)
	held := host.Stats().Held.Outbound
	etcdtest.Eventually(t, func() bool { return host.Stats().Held.Outbound > held }, "a reply is held")
	leader.stop()
	passed := host.Stats().Passed.Outbound
	host.Mend() // now it waits in the buffers of a process that is stopped
	etcdtest.Eventually(t, func() bool { return host.Stats().Passed.Outbound > passed }, "the reply is delivered")
	// Later messages are still on their way, above all the deletion of the key.
	host.Hold(etcdtest.Outbound)
	t.Cleanup(host.Mend)
	next := electiontest.Wins(t, result)
	require.Greater(t, int64(next.Token()), leader.leading.Token)

	leader.Signal(syscall.SIGCONT)
	first := leader.await("resumed")
	require.False(t, first.Holds, "it holds the leadership of somebody else")
	require.Equal(t, lease.Lost.String(), first.State)
	require.True(t, first.Ended)
	leader.Send("status")
	later := leader.await("status")
	require.False(t, later.Holds)
	require.Equal(t, lease.Lost.String(), later.State, "it was revived")
	require.Equal(t, first.Renewals, later.Renewals, "the stale reply counted as a renewal")
	require.NoError(t, next.Err())
}

// Row 13. The leader is stopped while a write is on its way, which arrives in another candidate's
// tenure. In other implementations it is applied: the split brain that a lock service was to
// prevent. In Eldest the guard refuses it and nothing is applied. An unguarded write in the same
// situation shows that the test is valid.
//
// Fails when txn.Guard does not compare the create revision.
func TestRegression13_WriteOfAStoppedLeader(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	host := c.Host(t)
	leader := startChild(t, order{Endpoints: host.Endpoints(), Election: name, TTL: 4 * time.Second})
	waiter := join(t, c.Client(t), name)
	result := waiter.Queue(t)
	host.Hold(etcdtest.Inbound)
	guarded, unguarded := "guarded-"+name, "unguarded-"+name
	leader.Send("guarded " + guarded)
	leader.Send("unguarded " + unguarded)
	leader.await("sending")
	leader.await("sending")
	etcdtest.Eventually(t, func() bool { return host.Stats().Held.Inbound > 0 }, "the writes are on their way")
	leader.stop()
	next := electiontest.Wins(t, result)
	require.NoError(t, etcdtest.Err(next.KV().Put(etcdtest.Context(t), "new-"+name, "new")))
	host.Mend()
	leader.Signal(syscall.SIGCONT)
	wrote := map[string]report{}
	for range 2 {
		r := leader.await("wrote")
		wrote[r.Name] = r
	}
	require.Empty(t, wrote[unguarded].Error, "the stage: the unguarded write is applied")
	require.Contains(t, wrote[guarded].Error, eldest.ErrDeposed.Error(), "the guarded write of a former leader")
	read := func(key string) int64 {
		resp, err := c.Client(t).Get(etcdtest.Context(t), key)
		require.NoError(t, err)
		return resp.Count
	}
	require.EqualValues(t, 1, read(unguarded))
	require.EqualValues(t, 0, read(guarded), "a write of a former leader was applied")
	require.NoError(t, next.Err())
}

// Row 19, a live lease. The process restarts within its TTL. In other implementations the new
// process queues behind its own old key until that expires. In Eldest it resumes the lease, and
// key, token and leadership are kept.
//
// Fails when lease.Resume grants a new lease, or when a campaign does not adopt the existing key.
func TestRegression19_ResumeAfterRestart(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	old := startChild(t, order{Endpoints: c.Endpoints(), Election: name, TTL: 20 * time.Second})
	behind := join(t, c.Client(t), name).Queue(t)
	require.NoError(t, old.Cmd.Process.Kill())

	cli := c.Client(t)
	s, err := lease.Resume(etcdtest.Context(t), lease.Config{Lease: cli}, clientv3.LeaseID(old.leading.Lease))
	require.NoError(t, err)
	require.EqualValues(t, old.leading.Lease, s.ID(), "it is another lease")
	require.Equal(t, 20*time.Second, s.TTL())
	p := join(t, cli, name, onSession(s))
	l := p.Lead(t)
	require.Equal(t, old.leading.Key, l.Key())
	require.EqualValues(t, old.leading.Token, l.Token())
	require.True(t, etcdtest.Take(t, p.Registered, "its registration").Adopted)
	require.True(t, l.Holds(time.Second))
	require.Empty(t, behind)

	// The same within one process: abandoned, not closed.
	s.Abandon()
	etcdtest.Take(t, l.Done(), "the end of the tenure on this side")
	s, err = lease.Resume(etcdtest.Context(t), lease.Config{Lease: cli}, s.ID())
	require.NoError(t, err)
	again := join(t, cli, name, onSession(s)).Lead(t)
	require.Equal(t, l.Token(), again.Token())
	require.NoError(t, again.Resign(etcdtest.Context(t)))
	electiontest.Wins(t, behind)
}
