package elector_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

const (
	// short is the TTL of nodes that will be partitioned: the shortest that a busy machine keeps
	// renewing.
	short = 3 * time.Second
	// busy is how much longer than each bound a busy machine may take.
	busy = 1500 * time.Millisecond
	// raft is the election timeout of clusters of three: long enough that etcd does not lose its
	// own leader on a busy machine, short enough for a TTL (I7).
	raft = 300 * time.Millisecond
)

// three starts a cluster of three.
func three(t *testing.T) *etcdtest.Cluster {
	t.Helper()
	return etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: raft / 10, Election: raft})
}

// members is a cluster of three with three nodes, each of which is connected to a member of its own
// and to no other. All statuses are sampled from the beginning to the end.
type members struct {
	*etcdtest.Cluster
	name    string
	nodes   []*node
	clients []*clientv3.Client
	samples *samples
	// held is how much had been held back on a member's links before it was partitioned.
	held [3]int64
}

// startMembers returns when node 0 leads and the others follow it, in the queue in the
// order of their numbers.
func startMembers(t *testing.T) *members {
	t.Helper()
	m := &members{Cluster: three(t), name: etcdtest.Election(t)}
	for i, id := range []string{"n0", "n1", "n2"} {
		m.clients = append(m.clients, m.ClientTo(t, i))
		e, err := elector.New(config(m.name, id, m.clients[i], ttl(short), func(cfg *elector.Config) {
			// The default: what must be detected within a TTL must not depend on how often an
			// observer checks.
			cfg.Observer = observe.Options{}
		}))
		require.NoError(t, err)
		m.nodes = append(m.nodes, &node{Elector: e, id: id, won: make(chan *elector.Leadership, 16), done: make(chan error, 1)})
	}
	begin := time.Now()
	m.samples = sample(t, m.nodes)
	for i, n := range m.nodes {
		var ctx context.Context
		ctx, n.stop = context.WithCancel(context.Background())
		go func() { n.done <- n.Run(ctx, m.lead(t, n)) }()
		t.Cleanup(func() { _ = n.end(t) })
		if i == 0 {
			n.becomes(t, elector.Leading)
		} else {
			n.follows(t, "n0")
		}
	}
	m.queued(t, 0, 1, 2)
	for i, role := range []elector.Role{elector.Leading, elector.Following, elector.Following} {
		m.samples.became(t, i, role, begin) // so that later samples have a state to differ from
	}
	return m
}

// lead returns the lead function of a node. It checks that no other node leads when it begins.
func (m *members) lead(t *testing.T, n *node) func(context.Context, *elector.Leadership) error {
	return func(ctx context.Context, l *elector.Leadership) error {
		for _, other := range m.nodes {
			if s := other.Status(); other != n && s.Role() == elector.Leading && l.Err() == nil {
				t.Errorf("%s has won token %d, and %s is %v", n.id, l.Token(), other.id, s)
			}
		}
		n.won <- l
		<-ctx.Done()
		return nil
	}
}

// cutOff partitions each of the given members from all others.
func (m *members) cutOff(t *testing.T, cut ...int) time.Time {
	t.Helper()
	for _, i := range cut {
		var err error
		m.held[i], err = m.Held(i)
		require.NoError(t, err)
	}
	at := time.Now()
	for _, i := range cut {
		require.NoError(t, m.Cut(i))
	}
	return at
}

// mend joins members to the others again, and returns the moment before that: from then on their
// nodes may receive news. It requires that nothing got through until then, because a fault that
// took no effect proves nothing.
func (m *members) mend(t *testing.T, cut ...int) (at time.Time) {
	t.Helper()
	for _, i := range cut {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		_, err := m.clients[i].Put(ctx, "cut", "")
		cancel()
		require.Error(t, err, "INVALID: member %d was not cut off", i)
		held, err := m.Held(i)
		require.NoError(t, err)
		require.Greater(t, held, m.held[i], "INVALID: nothing was held back at member %d", i)
	}
	at = time.Now()
	for _, i := range cut {
		require.NoError(t, m.Mend(i))
	}
	for _, i := range cut {
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := m.clients[i].Put(ctx, "cut", "")
			return err == nil
		}, etcdtest.Patience, time.Millisecond, "member %d has not healed", i)
	}
	return at
}

// term returns the newest Raft term that the given members have. If the term has changed without a
// fault, a busy machine stopped etcd's leader for longer than the election timeout. All leases then
// begin anew, and for a moment etcd may have no leader.
func (m *members) term(t *testing.T, of ...int) (newest uint64) {
	t.Helper()
	for _, i := range of {
		status, err := m.clients[i].Status(etcdtest.Context(t), m.Endpoints()[i])
		require.NoError(t, err)
		newest = max(newest, status.RaftTerm)
	}
	return newest
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

// followed waits until nodes follow a tenure and have all of its data.
func (m *members) followed(t *testing.T, l *elector.Leadership, leader int, by ...int) {
	t.Helper()
	for _, i := range by {
		_, err := m.nodes[i].Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool {
			seen, ok := s.Leader()
			return ok && seen.Token == l.Token() && seen.Key == l.Key() && seen.NodeID == m.nodes[leader].id &&
				seen.Instance == m.nodes[leader].Instance() && seen.TTL == short
		})
		require.NoError(t, err, "n%d does not follow n%d: %v", i, leader, m.nodes[i].Status())
	}
}

// queued waits until the queue consists of exactly these nodes, in this order.
func (m *members) queued(t *testing.T, order ...int) {
	t.Helper()
	cli := m.Client(t)
	var ids []string
	for _, i := range order {
		ids = append(ids, m.nodes[i].id)
	}
	var line []string
	require.Eventually(t, func() bool {
		line = nodesOf(t, queueOf(t, cli, m.name))
		if len(line) != len(ids) {
			return false
		}
		for i, id := range ids {
			if line[i] != id {
				return false
			}
		}
		return true
	}, etcdtest.Patience, 5*time.Millisecond, "the queue should be %v", ids)
}
