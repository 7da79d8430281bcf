package elector_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// short is the TTL of nodes that will be partitioned: the shortest that a busy machine keeps
// renewing.
const short = 5 * time.Second

// members is a cluster of three with three nodes, each of which is connected to a member of its own
// and to no other.
type members struct {
	*etcdtest.Cluster
	name    string
	nodes   []*node
	clients []*clientv3.Client
}

// startMembers returns when node 0 leads and the others follow it, in the queue in the order of
// their numbers. From then on the test fails if two nodes lead at one moment.
func startMembers(t *testing.T) *members {
	t.Helper()
	// The election timeout is long enough that etcd does not lose its own leader on a busy machine,
	// and short enough for the TTL (I7).
	const raft = 300 * time.Millisecond
	m := &members{
		Cluster: etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: raft / 10, Election: raft}),
		name:    etcdtest.Election(t),
	}
	for i, id := range []string{"n0", "n1", "n2"} {
		m.clients = append(m.clients, m.ClientTo(t, i))
		n := run(t, config(m.name, id, m.clients[i], ttl(short), func(cfg *elector.Config) {
			// The default: what must be detected within a TTL must not depend on how often an
			// observer checks.
			cfg.Observer = observe.Options{}
		}))
		m.nodes = append(m.nodes, n)
		if i == 0 {
			n.becomes(t, elector.Leading)
		} else {
			n.follows(t, "n0")
		}
	}
	m.queued(t, "n0", "n1", "n2")
	m.neverTwo(t)
	return m
}

// neverTwo reads all statuses each millisecond until the end of the test.
func (m *members) neverTwo(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	began, looks := time.Now(), 0
	reading.Go(func() {
		for ; ctx.Err() == nil; looks++ {
			for i, n := range m.nodes {
				_, token, leads := n.Status().Own()
				for _, other := range m.nodes[i+1:] {
					if s := other.Status(); leads && s.Role() == elector.Leading {
						// If n still leads in the same tenure, it led at that moment as well.
						if _, again, still := n.Status().Own(); still && again == token {
							t.Errorf("%s leads with token %d, and %s is %v", n.id, token, other.id, s)
						}
					}
				}
			}
			time.Sleep(time.Millisecond)
		}
	})
	t.Cleanup(func() {
		stop()
		reading.Wait()
		if took := time.Since(began); looks < int(took/(50*time.Millisecond)) {
			t.Errorf("INVALID: %d looks in %v are too few", looks, took)
		}
	})
}

// apart partitions each of the given members from all others while scene runs, which is told since
// when. It fails if something got through: a fault that took no effect proves nothing.
func (m *members) apart(t *testing.T, scene func(since time.Time), cut ...int) {
	t.Helper()
	held := func(i int) int64 {
		n, err := m.Held(i)
		require.NoError(t, err)
		return n
	}
	before := make(map[int]int64)
	for _, i := range cut {
		before[i] = held(i)
		require.NoError(t, m.Cut(i))
	}
	scene(time.Now())
	for _, i := range cut {
		_, err := m.clients[i].Put(etcdtest.ContextFor(t, 200*time.Millisecond), "cut", "")
		require.Error(t, err, "INVALID: member %d was not cut off", i)
		require.Greater(t, held(i), before[i], "INVALID: nothing was held back at member %d", i)
	}
	for _, i := range cut {
		require.NoError(t, m.Mend(i))
	}
	for _, i := range cut {
		etcdtest.Reachable(t, m.clients[i])
	}
}

// unknownAt requires that a node is unknown at a moment; Status reads the clock when it is called.
func (m *members) unknownAt(t *testing.T, i int, at time.Time) {
	t.Helper()
	time.Sleep(time.Until(at))
	require.Equal(t, elector.Unknown, m.nodes[i].Status().Role(), "n%d: %v", i, m.nodes[i].Status())
}

// wins waits until one of the nodes wins.
func (m *members) wins(t *testing.T) (leader int, l *elector.Leadership) {
	t.Helper()
	select {
	case l = <-m.nodes[0].won:
		return 0, l
	case l = <-m.nodes[1].won:
		return 1, l
	case l = <-m.nodes[2].won:
		return 2, l
	case <-time.After(etcdtest.Patience):
		require.FailNow(t, "nobody wins")
		return -1, nil
	}
}

// queued waits until the queue consists of exactly these nodes, in this order.
func (m *members) queued(t *testing.T, ids ...string) {
	t.Helper()
	cli := m.Client(t)
	etcdtest.Eventually(t, func() bool {
		line := nodesOf(t, queueOf(t, cli, m.name))
		return slices.Equal(line, ids)
	}, "the queue should be %v", ids)
}

// handover partitions the leader's member and returns the leader's successor. The old leader is
// unknown when its lease has ended, and stays unknown until the partition is healed; then it is at
// the end of the queue and follows the successor, whose tenure goes on.
func (m *members) handover(t *testing.T, old *elector.Leadership, from int) (to int, next *elector.Leadership) {
	t.Helper()
	was := m.nodes[from]
	m.apart(t, func(since time.Time) {
		m.unknownAt(t, from, since.Add(short))
		to, next = m.wins(t)
		require.ErrorIs(t, old.Err(), eldest.ErrSessionLost, "the old leading context lives at the successor's win")
		require.False(t, old.Holds(0))
		require.Greater(t, next.Token(), old.Token())
		require.Less(t, time.Since(since), 10*short, "its lease was renewed")
		m.nodes[3-from-to].follows(t, m.nodes[to].id)
		require.Equal(t, elector.Unknown, was.Status().Role())
	}, from)
	seen := was.follows(t, m.nodes[to].id)
	require.Equal(t, next.Token(), seen.Token)
	require.Equal(t, next.Key(), seen.Key)
	require.Equal(t, short, seen.TTL)
	m.queued(t, m.nodes[to].id, m.nodes[3-from-to].id, was.id)
	require.NoError(t, next.Err(), "healing cost the successor its tenure")
	require.Empty(t, m.nodes[3-from-to].won)
	return to, next
}

// Requirement 51. The leader's member is etcd's own leader as well. Such a member goes on renewing
// the leases of its clients by itself until it steps down, within two election timeouts. Whether a
// session counts these renewals is tested by TestRenewedByAnEtcdLeaderThatWasStopped of lease.
func TestRequirement51PartitionOfEtcdsLeader(t *testing.T) {
	t.Parallel()
	m := startMembers(t)
	leader, l := m.wins(t)
	for range 2 {
		require.NoError(t, m.MoveLeader(etcdtest.Context(t), leader))
		leader, l = m.handover(t, l, leader)
	}
}

// Requirement 51. Each member is isolated. No node can lead, and within the TTL all statuses are
// Unknown; when there is a majority again, exactly one node leads and the others follow it.
func TestRequirement51MajorityLostAndRegained(t *testing.T) {
	t.Parallel()
	m := startMembers(t)
	_, l := m.wins(t)
	m.apart(t, func(since time.Time) {
		for i := range m.nodes { // one of them is at etcd's leader, whose reply alone confirms nothing
			m.unknownAt(t, i, since.Add(short))
		}
		require.ErrorIs(t, l.Err(), eldest.ErrSessionLost)
	}, 1, 2)
	healed := time.Now()
	cli := m.Client(t)
	etcdtest.Eventually(t, func() bool {
		leader := ""
		for _, n := range m.nodes {
			if n.Status().Role() == elector.Leading {
				leader = n.id
			}
		}
		for _, n := range m.nodes {
			if seen, _ := n.Status().Leader(); n.id != leader && seen.NodeID != leader {
				return false
			}
		}
		return leader != "" && len(queueOf(t, cli, m.name)) == len(m.nodes)
	}, "one leads, and the others follow it")
	require.Less(t, time.Since(healed), 4*short)
	require.ElementsMatch(t, []string{"n0", "n1", "n2"}, nodesOf(t, queueOf(t, cli, m.name)))
}
