package elector_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Requirement 51. The tests of this file run three nodes, each connected to its own member of
// three, and read all statuses each millisecond. They fail if two nodes are ever seen to lead at
// one moment, if a fault did not take effect, or if a lead function begins while another node's
// status is still Leading.

// handover partitions the leader's member and returns the leader's successor. The old leader
// becomes unknown within a given time, before the successor leads, and stays unknown until the
// partition is healed; then it is at the end of the queue and follows the successor, whose tenure
// goes on. terms is by how many the partition increases etcd's own term.
func (m *members) handover(t *testing.T, old *elector.Leadership, from int, most time.Duration, terms uint64) (to int, next *elector.Leadership) {
	t.Helper()
	term := m.term(t, 0, 1, 2) + terms
	at := m.cutOff(t, from)
	to, next = m.wins(t)
	third := 3 - from - to
	require.Error(t, old.Err(), "the old leading context lives at the successor's win")
	require.ErrorIs(t, old.Err(), eldest.ErrSessionLost)
	require.False(t, old.Holds(0))
	require.Greater(t, next.Token(), old.Token())
	unknown, leading := m.samples.became(t, from, elector.Unknown, at), m.samples.became(t, to, elector.Leading, at)
	t.Logf("n%d cut off: unknown after %v; n%d leads after %v", from, unknown, to, leading)
	require.LessOrEqual(t, unknown, leading)
	require.Less(t, unknown, most)
	lives := 1 + max(0, int64(m.term(t, to))-int64(term)) // each change of etcd's leader that the test did not cause renews the lease once
	require.Less(t, leading, 2*raft+time.Duration(lives)*(short+raft)+time.Second+busy)
	m.followed(t, next, to, third)

	mended := m.mend(t, from)
	m.samples.only(t, from, at, mended, elector.Leading, elector.Unknown)
	m.samples.never(t, third, at, elector.Leading)
	m.followed(t, next, to, from)
	m.queued(t, to, third, from)
	require.NoError(t, next.Err(), "healing cost the successor its tenure")
	require.Equal(t, elector.Leading, m.nodes[to].Status().Role())
	return to, next
}

// The leader's member is etcd's own leader as well. Such a member goes on renewing the leases of
// its clients by itself until it steps down, within two election timeouts. The test fails if a
// session accepts its replies without the confirmation of a majority.
func TestRequirement51PartitionOfEtcdsLeader(t *testing.T) {
	t.Parallel()
	m := startMembers(t)
	leader, l := m.wins(t)
	for range 2 {
		require.NoError(t, m.MoveLeader(etcdtest.Context(t), leader))
		leader, l = m.handover(t, l, leader, short, 1)
	}
}

// Each member is isolated. No node can lead, and within the TTL all statuses are Unknown; when
// there is a majority again, exactly one node leads and the others follow it.
func TestRequirement51MajorityLostAndRegained(t *testing.T) {
	t.Parallel()
	m := startMembers(t)
	_, l := m.wins(t)
	at := m.cutOff(t, 1, 2)
	for i := range m.nodes {
		took := m.samples.became(t, i, elector.Unknown, at)
		t.Logf("n%d neither after %v", i, took)
		require.Less(t, took, short) // one of them is etcd's leader, whose reply alone confirms nothing
	}
	require.ErrorIs(t, l.Err(), eldest.ErrSessionLost)
	m.mend(t, 1, 2)
	healed := time.Now()
	m.agreed(t)
	t.Logf("one leader and two followers %v after healing", time.Since(healed))
	require.Less(t, time.Since(healed), 10*time.Second)
}

// agreed waits until one node leads, the others follow it, and the queue consists of the three.
func (m *members) agreed(t *testing.T) {
	t.Helper()
	agree(t, m.nodes)
	cli := m.Client(t)
	require.Eventually(t, func() bool { return len(queueOf(t, cli, m.name)) == len(m.nodes) }, etcdtest.Patience, 5*time.Millisecond)
	ids := nodesOf(t, queueOf(t, cli, m.name))
	require.ElementsMatch(t, []string{"n0", "n1", "n2"}, ids)
}

// agree waits until exactly one node leads and all others follow this tenure.
func agree(t *testing.T, nodes []*node) {
	t.Helper()
	etcdtest.Eventually(t, func() bool {
		leader := -1
		var token eldest.Token
		for i, n := range nodes {
			if _, own, ok := n.Status().Own(); ok {
				if leader >= 0 {
					return false
				}
				leader, token = i, own
			}
		}
		for i, n := range nodes {
			seen, follows := n.Status().Leader()
			if i != leader && (!follows || seen.Token != token || seen.NodeID != nodes[leader].id) {
				return false
			}
		}
		return leader >= 0
	}, "one leads, and the others follow it")
}
