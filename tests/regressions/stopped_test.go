package regressions

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 10. The leader is stopped past its TTL and goes on with a reply to a renewal waiting to be read.
// Elsewhere that reply revives the session: its age is counted from its reading. Here Holds is false at
// the first use, whatever has been read by then, and the session stays lost. (Processes that are really
// stopped: eldest chaos.)
func TestRegression10_StoppedPastTheTTL(t *testing.T) {
	t.Parallel()
	c, name, clock := etcdtest.Shared(t), etcdtest.Election(t), etcdtest.NewClock()
	host := c.Host(t)
	t.Cleanup(host.Mend)
	const life = 20 * time.Second
	var renewals atomic.Int64
	p := join(t, host.Client(t), name, ttl(life), func(l *lease.Config, _ *election.Config) {
		l.Clock = clock
		// A reply that comes late is still waited for, even past the end of the lease.
		l.Renewal = func(granted time.Duration) lease.Renewal {
			return lease.Renewal{Every: granted / 40, Timeout: 10 * granted}
		}
		l.Hooks.Renewed = func(lease.RenewedEvent) { renewals.Add(1) }
	})
	leader := p.Lead(t)
	result := join(t, c.Client(t), name).Queue(t)

	host.Hold(etcdtest.Outbound)
	held := host.Stats().Held.Outbound
	etcdtest.Eventually(t, func() bool { return host.Stats().Held.Outbound > held }, "a reply is held")
	before := renewals.Load()
	clock.Jump(life)
	passed := host.Stats().Passed.Outbound
	host.Mend()
	etcdtest.Eventually(t, func() bool { return host.Stats().Passed.Outbound > passed }, "the reply is delivered")
	// What comes after it is still under way, above all that the key is gone.
	host.Hold(etcdtest.Outbound)
	require.NoError(t, etcdtest.Err(c.Client(t).Revoke(etcdtest.Context(t), p.Session.ID())))
	next := electiontest.Wins(t, result)
	require.Greater(t, next.Token(), leader.Token())

	require.False(t, leader.Holds(0), "it holds the leadership of somebody else")
	require.Error(t, leader.Err())
	host.Mend()
	require.Equal(t, lease.Lost, p.Session.Status().State, "it was revived")
	require.Equal(t, before, renewals.Load(), "the stale reply counted as a renewal")
	require.NoError(t, next.Err())
}

// Row 13. A write of the leader is on its way when it loses its lease, and arrives when somebody else leads.
// Elsewhere it is applied: the split brain that a lock service was to prevent. Here the guard refuses it
// and nothing is applied. An unguarded write in the same situation shows that the test is right.
func TestRegression13_WriteOfAStoppedLeader(t *testing.T) {
	t.Parallel()
	c, name := etcdtest.Shared(t), etcdtest.Election(t)
	host := c.Host(t)
	t.Cleanup(host.Mend)
	p := join(t, host.Client(t), name)
	guard := p.Lead(t).Guard()
	guard.Alive = nil // it was looked at before the writes were sent
	result := join(t, c.Client(t), name).Queue(t)
	host.Hold(etcdtest.Inbound)
	put := func(kv clientv3.KV, key string) <-chan error {
		return etcdtest.Go(func() error { return etcdtest.Err(kv.Put(etcdtest.Context(t), key, "late")) })
	}
	guarded, unguarded := put(guard.KV(p.Client), "guarded-"+name), put(p.Client, "unguarded-"+name)
	etcdtest.Eventually(t, func() bool { return host.Stats().Held.Inbound > 0 }, "the writes are on their way")
	require.NoError(t, etcdtest.Err(c.Client(t).Revoke(etcdtest.Context(t), p.Session.ID())))
	next := electiontest.Wins(t, result)
	require.NoError(t, etcdtest.Err(next.KV().Put(etcdtest.Context(t), "new-"+name, "new")))
	host.Mend()
	require.NoError(t, etcdtest.Take(t, unguarded, "the unguarded write"), "INVALID: it was not under way")
	require.ErrorIs(t, etcdtest.Take(t, guarded, "the guarded write"), eldest.ErrDeposed, "the guarded write of a former leader")
	for key, want := range map[string]int64{"unguarded-" + name: 1, "guarded-" + name: 0} {
		resp, err := c.Client(t).Get(etcdtest.Context(t), key)
		require.NoError(t, err)
		require.Equal(t, want, resp.Count, key)
	}
	require.NoError(t, next.Err())
}

// Row 14. The system is suspended for an hour: the boot-time clock has moved on, the
// monotonic clock, by which timers run, has not. Elsewhere the session believes in its
// lease for another TTL. Here the deadline has passed at the first use, and nothing is
// sent on the strength of it. (The first use may be any other: TestFirstCallAfterASuspend of
// package election.)
func TestRegression14_SystemSuspend(t *testing.T) {
	t.Parallel()
	clock := etcdtest.NewClock()
	var rec etcdtest.Recorder
	p := join(t, etcdtest.Shared(t).Client(t, rec.Attach), etcdtest.Election(t), func(l *lease.Config, _ *election.Config) { l.Clock = clock })
	leader := p.Lead(t)
	require.True(t, leader.Holds(time.Second))
	guarded := leader.KV()
	rec.Reset()
	clock.Jump(time.Hour)
	require.False(t, leader.Holds(0), "the first use after the resume")
	require.ErrorIs(t, leader.Err(), eldest.ErrSessionLost)
	require.ErrorIs(t, etcdtest.Err(guarded.Put(etcdtest.Context(t), "k", "")), eldest.ErrNotLeading)
	require.Zero(t, rec.Count("Txn"), "it was left to etcd to refuse")
	require.Equal(t, lease.Lost, p.Session.Status().State)
}

// Row 19, a live lease. The process restarts within its TTL. Elsewhere the new life
// queues behind its own old key until that expires. Here it resumes the lease, and
// key, token and leadership are kept.
func TestRegression19_ResumeAfterRestart(t *testing.T) {
	t.Parallel()
	c, name := etcdtest.Shared(t), etcdtest.Election(t)
	old := join(t, c.Client(t), name, ttl(20*time.Second))
	before := old.Lead(t)
	behind := join(t, c.Client(t), name).Queue(t)
	old.Session.Abandon() // all that a process leaves which is killed
	cli := c.Client(t)
	s, err := lease.Resume(etcdtest.Context(t), lease.Config{Lease: cli}, old.Session.ID())
	require.NoError(t, err)
	require.Equal(t, old.Session.ID(), s.ID(), "it is another lease")
	require.Equal(t, 20*time.Second, s.TTL())
	p := join(t, cli, name, onSession(s))
	l := p.Lead(t)
	require.Equal(t, before.Key(), l.Key())
	require.Equal(t, before.Token(), l.Token())
	require.True(t, etcdtest.Take(t, p.Registered, "its registration").Adopted)
	require.True(t, l.Holds(time.Second))
	require.Empty(t, behind)
	require.NoError(t, l.Resign(etcdtest.Context(t)))
	electiontest.Wins(t, behind)
}

// Row 19, a dead lease. Elsewhere the session hangs, or works without a lease. Here
// there is a clear error, and a new lease works.
func TestRegression19_ResumeADeadLease(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	p := join(t, cli, name)
	token := p.Lead(t).Token()
	require.NoError(t, p.Session.Close(etcdtest.Context(t)))
	ctx, cancel := context.WithTimeout(context.Background(), etcdtest.Patience)
	defer cancel()
	s, err := lease.Resume(ctx, lease.Config{Lease: cli}, p.Session.ID())
	require.ErrorIs(t, err, eldest.ErrSessionLost, "a lease that is gone was resumed")
	require.Nil(t, s)
	require.NoError(t, ctx.Err(), "it took a time-out to find out")
	require.Greater(t, join(t, cli, name).Lead(t).Token(), token)
}
