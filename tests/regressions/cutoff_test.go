package regressions

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// islandTTL is long enough for a busy machine not to cost a node its lease by itself.
const islandTTL = 6 * time.Second

// patient has an observer hear of etcd's silence long after the lease has ended: what makes
// a node neither is its deadline.
func patient(cfg *elector.Config) { cfg.Observer.Timeout = 5 * time.Second }

// island is a member of three, and the node that talks to it alone.
type island struct {
	*electiontest.Node
	member int
	cli    *clientv3.Client
	// cut cuts it off and mend undoes that.
	cut, mend func()
	// lost counts what did not get through.
	lost func() int64
}

// islands starts three members with a node on each. The first one leads, the others
// follow it. A cut is one between the members, in the given direction; or, with 0, a
// black hole between a node and its member.
func islands(t *testing.T, c *etcdtest.Cluster, name string, cut etcdtest.Direction) []*island {
	t.Helper()
	var all []*island
	var nodes []*electiontest.Node
	for i := range 3 {
		var is *island
		if cut == 0 {
			host := c.Host(t, i)
			t.Cleanup(host.Mend)
			is = &island{
				member: i, cli: host.Client(t), cut: host.Cut, mend: host.Mend,
				lost: func() int64 { s := host.Stats(); return s.Dropped.Inbound + s.Dropped.Outbound },
			}
		} else {
			is = &island{
				member: i, cli: c.ClientTo(t, i),
				cut:  func() { require.NoError(t, c.CutOneWay(i, cut)) },
				mend: func() { require.NoError(t, c.Mend(i)) },
				lost: func() int64 {
					held, err := c.Held(i)
					require.NoError(t, err)
					return held
				},
			}
		}
		is.Node = stand(t, is.cli, name, "n"+strconv.Itoa(i), electiontest.UntilTheEnd, lasting(islandTTL), patient)
		all, nodes = append(all, is), append(nodes, is.Node)
		electiontest.OneLeads(t, nodes)
	}
	electiontest.NeverTwo(t, nodes)
	return all
}

// during cuts an island off, plays a scene, and mends it; a cut through which a write
// still gets is none.
func (is *island) during(t *testing.T, scene func(since time.Time)) {
	t.Helper()
	before := is.lost()
	begin := time.Now()
	is.cut()
	scene(begin)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	require.Error(t, etcdtest.Err(is.cli.Put(ctx, "cut", "")), "INVALID: %s was not cut off", is.ID)
	require.Greater(t, is.lost(), before, "INVALID: nothing was lost at %s", is.ID)
	is.mend()
}

// at delivers what the island is at a moment, or a little later where the machine is busy:
// whoever is asked then reads the clock.
func (is *island) at(moment time.Time) <-chan elector.Role {
	role := make(chan elector.Role, 1)
	time.AfterFunc(time.Until(moment), func() { role <- is.Status().Role() })
	return role
}

// Row 30. The leader's member is partitioned, and all statuses are looked at all the
// time. Elsewhere two leaders are to be seen for 2.07 s, and the old one forwards to
// itself for as long. Here never: the old one is neither first, then the next one
// leads; when it has healed, the old one follows that one; and back again.
//
// Fails when Status does not end with the deadline, or the deadline counts from the
// receipt of a reply, or a session takes one member's word for a renewal.
func TestRegression30_PartitionedLeader(t *testing.T) {
	t.Parallel()
	for what, scene := range map[string]struct {
		direction etcdtest.Direction
		times     int
		// leads says that its member leads etcd as well. Such a one goes on renewing the leases of its
		// clients by itself until it steps down, within two election timeouts.
		leads bool
	}{
		"both ways":             {etcdtest.BothWays, 2, false}, // there, and back again
		"hears nobody":          {etcdtest.Inbound, 1, false},
		"is heard by nobody":    {etcdtest.Outbound, 1, false},
		"its member leads etcd": {etcdtest.BothWays, 2, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := electiontest.Three(t)
			name := etcdtest.Election(t)
			all := islands(t, c, name, scene.direction)
			old, l := all[0], all[0].Wins(t)
			require.NoError(t, c.MoveLeader(etcdtest.Context(t), 2))
			for range scene.times {
				if scene.leads {
					require.NoError(t, c.MoveLeader(etcdtest.Context(t), old.member))
				}
				var next *island
				var second *elector.Leadership
				old.during(t, func(begin time.Time) {
					late := old.at(begin.Add(islandTTL))
					old.Becomes(t, elector.Neither)
					require.Equal(t, elector.Neither, etcdtest.Take(t, late, "the end of its lease"), "a leader for longer than its lease")
					select {
					case second = <-all[0].Won:
						next = all[0]
					case second = <-all[1].Won:
						next = all[1]
					case second = <-all[2].Won:
						next = all[2]
					case <-time.After(etcdtest.Patience):
						require.FailNow(t, "no successor")
					}
					require.Error(t, l.Err())
					require.Equal(t, elector.Neither, old.Status().Role())
				})
				require.NotSame(t, old, next)
				old.Follows(t, next.ID, second.Token())
				require.NoError(t, second.Err())
				require.Equal(t, elector.Leading, next.Status().Role())
				for _, s := range old.Log.Statuses() {
					leader, _ := s.Leader()
					require.NotEqual(t, old.ID, leader.NodeID, "%v", s)
				}
				old, l = next, second
			}
			require.Len(t, queueOf(t, c, name), 3)
		})
	}
}

// Row 31. A follower is cut off for longer than the TTL: its member from the others, or
// it from its member. Elsewhere it goes on naming a leader, and after healing it is
// silently no participant any more. Here it is neither within the TTL, and a
// participant again after healing, one that leads when its turn comes.
//
// Fails when a follower's status does not rest on its session, or when a lost session
// is not the end of a round.
func TestRegression31_PartitionedFollower(t *testing.T) {
	t.Parallel()
	for what, direction := range map[string]etcdtest.Direction{"its member": etcdtest.BothWays, "it from its member": 0} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := electiontest.Three(t)
			name := etcdtest.Election(t)
			all := islands(t, c, name, direction)
			leader, other, cut := all[0], all[1], all[2]
			l := leader.Wins(t)
			require.NoError(t, c.MoveLeader(etcdtest.Context(t), 0))
			keys := queueOf(t, c, name)
			cut.during(t, func(begin time.Time) {
				late := cut.at(begin.Add(islandTTL))
				cut.Becomes(t, elector.Neither)
				require.Equal(t, elector.Neither, etcdtest.Take(t, late, "the end of its lease"), "it named a leader for longer than its lease")
				etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 2 }, "its place is lost")
				require.Equal(t, elector.Neither, cut.Status().Role())
			})
			cut.Follows(t, leader.ID, l.Token())
			etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 3 }, "it stands again")
			require.NotContains(t, keys, queueOf(t, c, name)[2])
			require.NoError(t, l.Err())
			require.EqualValues(t, 1, other.Rounds.Load())
			_ = leader.End(t)
			_ = other.End(t)
			second := cut.Wins(t)
			require.Greater(t, second.Token(), l.Token())
			require.ErrorIs(t, l.Err(), eldest.ErrClosed)
		})
	}
}

// Each member is alone. Nobody can lead, and within the TTL nobody claims anything;
// when there is a majority again, exactly one leads and the others follow it.
func TestRegression30_MajorityLostAndRegained(t *testing.T) {
	t.Parallel()
	c, name := electiontest.Three(t), etcdtest.Election(t)
	all := islands(t, c, name, etcdtest.BothWays)
	l := all[0].Wins(t)
	begin := time.Now()
	all[1].during(t, func(time.Time) {
		all[2].during(t, func(time.Time) {
			for _, is := range all {
				late := is.at(begin.Add(islandTTL))
				is.Becomes(t, elector.Neither)
				require.Equal(t, elector.Neither, etcdtest.Take(t, late, "the end of its lease"))
			}
			require.ErrorIs(t, l.Err(), eldest.ErrSessionLost)
		})
	})
	_, took := electiontest.OneLeads(t, []*electiontest.Node{all[0].Node, all[1].Node, all[2].Node})
	require.Less(t, took, 10*time.Second)
	etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 3 }, "all are in the queue again")
}

// Row 39. The leader crashes, and etcd changes its own leader before the lease has
// expired. The new one counts every lease anew, at the full TTL and an election timeout,
// so the fail-over takes up to twice as long; elsewhere that is nowhere said, and taken
// for a hang. Here the bound is documented (docs/faults.md) and measured: from the crash
// TTL + 1 s on a healthy etcd; after a change of etcd's leader TTL + E + 1 s more, and
// 2 E where it was killed and another one had to be elected. Safety is not touched by
// it: the leading context has ended long before.
//
// Nothing of this is in our hands but that the waiter hears of the end wherever its watch
// has gone by then, and that the old leader's deadline does not follow etcd's.
func TestRegression39_LeasesRestartWithEtcdsLeader(t *testing.T) {
	t.Parallel()
	const life, timeout = 3 * time.Second, 300 * time.Millisecond // the latter is that of three
	for what, scene := range map[string]struct {
		change func(t *testing.T, c *etcdtest.Cluster, leads int)
		// bound is how long the successor's win may take, from the change or, without
		// one, from the crash.
		bound time.Duration
	}{
		"healthy": {bound: life + time.Second},
		"moved": {bound: life + timeout + time.Second, change: func(t *testing.T, c *etcdtest.Cluster, leads int) {
			require.NoError(t, c.MoveLeader(etcdtest.Context(t), (leads+1)%3))
		}},
		"killed": {bound: 2*timeout + life + timeout + time.Second, change: func(t *testing.T, c *etcdtest.Cluster, leads int) {
			require.NoError(t, c.Member(leads).Kill())
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			// A machine that is busy with other things may need a second try.
			for try := range 3 {
				took, late, valid := failover(t, life, scene.change)
				t.Logf("the successor led %v after the crash or the change; valid: %v, the old leader's end was noted late: %v", took, valid, late)
				if valid && !late && took <= scene.bound {
					return
				}
				if try == 2 {
					require.True(t, valid, "INVALID: the lease was not counted anew: %v for a TTL of %v", took, life)
					require.False(t, late, "the old leading context ended after the successor's win")
					require.LessOrEqual(t, took, scene.bound, "later than the documented bound")
				}
			}
		})
	}
}

// failover crashes a leader, has etcd change its own when most of the TTL has passed, and
// returns how long the successor's win took since then. That is valid if the lease had
// not expired by then, and was counted anew. late says that the end of the old leading context
// was noted after the win: its timer was due, and perhaps its goroutine was not let run.
func failover(t *testing.T, life time.Duration, change func(*testing.T, *etcdtest.Cluster, int)) (took time.Duration, late, valid bool) {
	t.Helper()
	c := electiontest.Three(t)
	name := etcdtest.Election(t)
	host := c.Host(t)
	defer host.Mend()
	tenure := join(t, host.Client(t), name, ttl(life)).Lead(t)
	result := join(t, c.Client(t), name).Queue(t)
	ended := make(chan time.Time, 1)
	context.AfterFunc(tenure.Context(), func() { ended <- time.Now() })

	host.Cut() // as a crash looks from outside: no farewell, and no renewal
	since, valid := time.Now(), true
	if change != nil {
		leads, err := c.Leader(etcdtest.Context(t))
		require.NoError(t, err)
		<-time.After(life * 6 / 10) // the fault itself: the lease has most of its life behind it
		valid = len(result) == 0
		since = time.Now()
		change(t, c, leads)
	}
	won := electiontest.Wins(t, result)
	require.Error(t, tenure.Err(), "two leading contexts")
	require.ErrorIs(t, tenure.Err(), eldest.ErrSessionLost)
	end := etcdtest.Take(t, ended, "the end of the leading context")
	require.Greater(t, won.Token(), tenure.Token())
	require.Positive(t, host.Stats().Dropped.Inbound, "INVALID: nothing was cut")
	took = won.At.Sub(since)
	return took, end.After(won.At), valid && (change == nil || took >= life)
}
