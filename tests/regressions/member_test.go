package regressions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 11, one member of three. The other two answer, and the client has the endpoints of all of
// them. In other implementations the single stream of renewals goes to the member that drops
// everything, and the lease expires at two healthy members. In Eldest each attempt has its own
// timeout, the next one goes to another member, and the leader continues to lead.
//
// Each member is a black hole once, so one of them is the member to which etcd's stream goes;
// unless a busy etcd has broken the stream, which is then opened again to another member: therefore
// the members take turns until the stream was hit.
//
// Fails when lease.Session sends a renewal without a timeout of its own.
func TestRegression11_OneMemberOfThree(t *testing.T) {
	t.Parallel()
	const granted = 6 * time.Second // shorter than gRPC takes to give up a connection that does not respond
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
		<-time.After(granted + 1500*time.Millisecond) // the fault itself: both packages have checked their deadlines
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
