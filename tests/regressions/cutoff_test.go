package regressions

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// islandTTL is long enough that a busy machine alone does not cost a node its lease.
const islandTTL = 6 * time.Second

// patient makes an observer notice etcd's outage long after the lease has ended: the deadline alone
// makes a node unknown.
func patient(cfg *elector.Config) { cfg.Observer.Timeout = 5 * time.Second }

// island is a member of three, and the node that uses only this member.
type island struct {
	*node
	cli *clientv3.Client
	// cut partitions it and mend ends the partition.
	cut, mend func()
	// lost counts the messages that were held or dropped.
	lost func() int64
}

// islands starts three members with a node on each. The first one leads, the others follow it. The
// partition is between the members, in the given direction; or, with 0, it is a black hole between
// a node and its member.
func islands(t *testing.T, c *etcdtest.Cluster, name string, cut etcdtest.Direction) []*island {
	t.Helper()
	var all []*island
	var nodes []*node
	for i := range 3 {
		var is *island
		if cut == 0 {
			host := c.Host(t, i)
			t.Cleanup(host.Mend)
			is = &island{
				cli: host.Client(t), cut: host.Cut, mend: host.Mend,
				lost: func() int64 { s := host.Stats(); return s.Dropped.Inbound + s.Dropped.Outbound },
			}
		} else {
			is = &island{
				cli:  c.ClientTo(t, i),
				cut:  func() { require.NoError(t, c.CutOneWay(i, cut)) },
				mend: func() { require.NoError(t, c.Mend(i)) },
				lost: func() int64 {
					held, err := c.Held(i)
					require.NoError(t, err)
					return held
				},
			}
		}
		is.node = stand(t, is.cli, name, "n"+itoa(i), untilTheEnd, lasting(islandTTL), patient)
		all, nodes = append(all, is), append(nodes, is.node)
		oneLeads(t, nodes)
	}
	twoLead(t, nodes)
	return all
}

// during partitions an island, calls scene, and ends the partition. If a write still gets through
// the partition, the test is invalid.
func (is *island) during(t *testing.T, scene func(since time.Time)) {
	t.Helper()
	before := is.lost()
	is.cut()
	scene(time.Now()) // a renewal may have succeeded while the network was being cut
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	require.Error(t, etcdtest.Err(is.cli.Put(ctx, "cut", "")), "INVALID: %s was not cut off", is.id)
	require.Greater(t, is.lost(), before, "INVALID: nothing was lost at %s", is.id)
	is.mend()
}

// Row 30. The leader's member is partitioned, and the status of every node is read all the time. In
// other implementations there are two leaders for 2.07 s, and the old one forwards to itself for as
// long. In Eldest this never happens: the old leader becomes unknown first, then the next one
// leads; after the partition the old one follows the new one. Then the new leader is partitioned. A run
// has a share of the directions, and -all runs all of them.
//
// Fails when Status does not end with the deadline, or when the deadline counts from the receipt of
// a reply.
func TestRegression30_PartitionedLeader(t *testing.T) {
	t.Parallel()
	directions := map[string]etcdtest.Direction{
		"both ways": etcdtest.BothWays, "hears nobody": etcdtest.Inbound, "is heard by nobody": etcdtest.Outbound,
	}
	for _, what := range share(t, directions, "both ways") {
		direction := directions[what]
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := three(t)
			name := etcdtest.Election(t)
			all := islands(t, c, name, direction)
			first := etcdtest.Take(t, all[0].won, "the first tenure")
			require.NoError(t, c.MoveLeader(etcdtest.Context(t), 2))
			old, l := all[0], first
			times := 1
			if direction == etcdtest.BothWays {
				times = 2 // then the new leader is partitioned as well
			}
			for range times {
				var next *island
				var second *elector.Leadership
				old.during(t, func(begin time.Time) {
					late := old.at(begin.Add(islandTTL))
					old.becomes(t, elector.Unknown)
					require.Equal(t, elector.Unknown, etcdtest.Take(t, late, "the end of its lease"), "a leader for longer than its lease")
					select {
					case second = <-all[0].won:
						next = all[0]
					case second = <-all[1].won:
						next = all[1]
					case second = <-all[2].won:
						next = all[2]
					case <-time.After(etcdtest.Patience):
						require.FailNow(t, "no successor")
					}
					require.Error(t, l.Err())
					require.Equal(t, elector.Unknown, old.Status().Role())
				})
				require.NotSame(t, old, next)
				old.follows(t, next.node, second.Token())
				require.NoError(t, second.Err())
				require.Equal(t, elector.Leading, next.Status().Role())
				for _, s := range old.log.all() {
					leader, _ := s.Leader()
					require.NotEqual(t, old.id, leader.NodeID, "%v", s)
				}
				old, l = next, second
			}
			require.Len(t, queueOf(t, c, name), 3)
		})
	}
}

// Row 31. A follower is partitioned for longer than the TTL: its member from the other members, or
// the follower from its member. In other implementations it continues to report a leader, and after
// the partition it is not a candidate any more and reports no error. In Eldest it is unknown within
// the TTL, and a candidate again after the partition; it leads when it is the oldest.
//
// Fails when a follower's status does not depend on its session, or when a lost session does not
// end the round.
func TestRegression31_PartitionedFollower(t *testing.T) {
	t.Parallel()
	for what, direction := range map[string]etcdtest.Direction{"its member": etcdtest.BothWays, "it from its member": 0} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := three(t)
			name := etcdtest.Election(t)
			all := islands(t, c, name, direction)
			leader, other, cut := all[0], all[1], all[2]
			l := etcdtest.Take(t, leader.won, "the tenure")
			require.NoError(t, c.MoveLeader(etcdtest.Context(t), 0))
			keys := queueOf(t, c, name)
			cut.during(t, func(begin time.Time) {
				late := cut.at(begin.Add(islandTTL))
				cut.becomes(t, elector.Unknown)
				require.Equal(t, elector.Unknown, etcdtest.Take(t, late, "the end of its lease"), "it named a leader for longer than its lease")
				etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 2 }, "its place is lost")
				require.Equal(t, elector.Unknown, cut.Status().Role())
			})
			cut.follows(t, leader.node, l.Token())
			etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 3 }, "it stands again")
			require.NotContains(t, keys, queueOf(t, c, name)[2])
			require.NoError(t, l.Err())
			require.EqualValues(t, 1, other.rounds.Load())
			_ = leader.end(t)
			_ = other.end(t)
			second := etcdtest.Take(t, cut.won, "its own tenure")
			require.Greater(t, second.Token(), l.Token())
			require.ErrorIs(t, l.Err(), eldest.ErrClosed)
		})
	}
}
