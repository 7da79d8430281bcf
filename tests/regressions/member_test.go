package regressions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 11, one member of three. The other two answer, and the client has all of them.
// Elsewhere the one stream of renewals runs to the member that swallows everything, and
// the lease expires at two healthy members. Here an attempt ends by its own time-out,
// the next one goes to another member, and the leader leads on.
//
// Each member is a black hole once, so one of them is that to which etcd's stream runs;
// unless a busy etcd has broken the stream, which then begins anew at another one: so
// they take turns until it has been met.
//
// Fails when lease.Session sends a renewal without a time-out of its own.
func TestRegression11_OneMemberOfThree(t *testing.T) {
	t.Parallel()
	const granted = 6 * time.Second // less than it takes gRPC to give up a silent connection
	c := etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: 100 * time.Millisecond, Election: time.Second})
	name := etcdtest.Election(t)
	host := c.Host(t)
	defer host.Mend()
	outside := c.Client(t)
	leader := join(t, host.Client(t), name, func(l *lease.Config, _ *election.Config) { l.TTL = granted })
	tenure := leader.Lead(t)
	session, _ := theirs(t, host.Client(t), "theirs-"+name, int(granted/time.Second))
	lost := func() bool {
		select {
		case <-session.Done():
			return true
		default:
			return false
		}
	}
	for round := 0; round < c.Size() || !lost(); round++ {
		require.Less(t, round, 4*c.Size(), "the fault is mended?")
		hole := host.Proxy(round % c.Size())
		before := hole.Stats().Dropped.Inbound
		hole.Drop(etcdtest.BothWays)
		<-time.After(granted + 1500*time.Millisecond) // the fault itself: both packages have looked at their deadlines
		require.Greater(t, hole.Stats().Dropped.Inbound, before, "INVALID: nothing was swallowed")
		require.NoError(t, tenure.Err(), "one member of three cost the leader its tenure")
		require.True(t, tenure.Holds(0))
		hole.Mend()
	}
	etcdtest.Eventually(t, func() bool {
		left, err := outside.TimeToLive(etcdtest.Context(t), session.Lease())
		require.NoError(t, err)
		return left.TTL < 0
	}, "their lease is gone at etcd")
	left, err := outside.TimeToLive(etcdtest.Context(t), leader.Session.ID())
	require.NoError(t, err)
	require.Positive(t, left.TTL, "ours lives")
	require.NoError(t, tenure.Resign(etcdtest.Context(t)))
}
