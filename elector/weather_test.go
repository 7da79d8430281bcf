package elector_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// fault takes effect when do is called, and lasts until undo is called.
type fault struct {
	what string
	do   func(r *rand.Rand) (undo func())
	most time.Duration // its longest duration; 0: the usual one
}

// ofHosts are the faults of one node's network.
func (s *storm) ofHosts() []fault {
	on := func(what string, do func(r *rand.Rand, h *etcdtest.Host)) fault {
		return fault{what: what, do: func(r *rand.Rand) func() {
			h := s.seats[s.whom(r)].host
			do(r, h)
			return h.Mend
		}}
	}
	direction := func(r *rand.Rand) etcdtest.Direction { return etcdtest.Direction(1 + r.IntN(3)) }
	return []fault{
		on("drop", func(r *rand.Rand, h *etcdtest.Host) { h.Drop(direction(r)) }),
		on("hold", func(r *rand.Rand, h *etcdtest.Host) { h.Hold(direction(r)) }),
		on("delay", func(r *rand.Rand, h *etcdtest.Host) {
			h.Delay(time.Duration(r.Int64N(int64(time.Second))), time.Duration(r.Int64N(int64(time.Second))))
		}),
		on("reset", func(_ *rand.Rand, h *etcdtest.Host) { h.Reset() }),
		on("refuse", func(_ *rand.Rand, h *etcdtest.Host) { h.Refuse(); h.Reset() }),
		on("swallow", func(_ *rand.Rand, h *etcdtest.Host) { h.SwallowNextReply(nil) }),
		on("hole at one member", func(r *rand.Rand, h *etcdtest.Host) { h.Proxy(r.IntN(3)).Drop(direction(r)) }),
	}
}

// whom picks a node, the leader more often than others.
func (s *storm) whom(r *rand.Rand) int {
	whom := r.IntN(len(s.seats))
	if r.IntN(2) == 0 {
		for i, p := range s.seats {
			if p.life.Load().Status().Role() == elector.Leading {
				whom = i
			}
		}
	}
	return whom
}

// ofMembers are the faults of etcd, one at a time.
func (s *storm) ofMembers() []fault {
	c := s.cluster
	which := func(what string, choose func(*rand.Rand) []int, do, undo func(i int) error) fault {
		return fault{what: what, do: func(r *rand.Rand) func() {
			members := choose(r)
			for _, i := range members {
				assert.NoError(s.t, do(i), "%s", what)
			}
			return func() {
				for _, i := range members {
					assert.NoError(s.t, undo(i), "%s", what)
				}
			}
		}}
	}
	on := func(what string, n int, do, undo func(i int) error) fault {
		return which(what, func(r *rand.Rand) []int { return r.Perm(3)[:n] }, do, undo)
	}
	// from chooses etcd's leader, or a member next to it, if the leader is known.
	from := func(distance int) func(*rand.Rand) []int {
		return func(*rand.Rand) []int {
			ctx, cancel := context.WithTimeout(context.Background(), gust)
			defer cancel()
			leader, err := c.Leader(ctx)
			if err != nil {
				return nil
			}
			return []int{(leader + distance) % 3}
		}
	}
	kill := func(i int) error { return c.Member(i).Kill() }
	halt := func(i int) error { return c.Member(i).Stop() }
	back := func(i int) error {
		ctx, cancel := context.WithTimeout(context.Background(), etcdtest.Patience)
		defer cancel()
		return c.Member(i).Restart(ctx)
	}
	goOn := func(i int) error { return c.Member(i).Cont() }
	oneWay := func(d etcdtest.Direction) func(int) error { return func(i int) error { return c.CutOneWay(i, d) } }
	// If etcd's leader is stopped for longer than the TTL, all leases may be lost when it
	// continues, whether they were renewed through other members or not (decision 0016).
	leaderStopped := which("etcd leader stopped", from(0), halt, goOn)
	leaderStopped.most = gust / 2
	return []fault{
		leaderStopped,
		on("member killed", 1, kill, back),
		which("member stopped", from(1), halt, goOn),
		on("majority stopped", 2, halt, goOn),
		on("member cut", 1, c.Cut, c.Mend),
		on("member hears nobody", 1, oneWay(etcdtest.Inbound), c.Mend),
		on("member is heard by nobody", 1, oneWay(etcdtest.Outbound), c.Mend),
		on("majority cut", 2, c.Cut, c.Mend),
		{what: "etcd leader moved", do: func(r *rand.Rand) func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = c.MoveLeader(ctx, r.IntN(3)) // it may fail
			return func() {}
		}},
	}
}

// ofNodes are the faults of the nodes themselves.
func (s *storm) ofNodes() []fault {
	return []fault{
		{what: "lead function returns", do: func(*rand.Rand) func() {
			for _, p := range s.seats {
				select {
				case p.enough <- struct{}{}:
				default:
				}
			}
			return func() {}
		}},
		{what: "node restarted", do: func(r *rand.Rand) func() {
			p := s.seats[s.whom(r)]
			p.end()
			return p.live
		}},
	}
}

// blow causes one fault after another until the storm is over.
func (s *storm) blow(r *rand.Rand, faults []fault) {
	lasts := func(most time.Duration) {
		d := time.NewTimer(time.Duration(r.Int64N(int64(most))))
		defer d.Stop()
		<-d.C
	}
	for s.ctx.Err() == nil {
		f := faults[r.IntN(len(faults))]
		begin := time.Since(s.begin)
		undo := f.do(r)
		s.mu.Lock()
		s.faults[f.what]++
		s.mu.Unlock()
		most := gust + gust/2
		if f.most > 0 {
			most = f.most
		}
		lasts(most)
		undo()
		s.t.Logf("%10v to %v: %s", begin.Round(time.Millisecond), time.Since(s.begin).Round(time.Millisecond), f.what)
		lasts(gust / 2)
	}
}

// calm waits until the nodes agree, ends all nodes, and waits until they have left nothing in etcd.
func (s *storm) calm() {
	t := s.t
	cli := s.cluster.Client(t)
	begin := time.Now()
	var nodes []*node
	var ids []string
	for _, p := range s.seats {
		p.host.Mend()
		nodes, ids = append(nodes, &node{Elector: p.life.Load(), id: p.id}), append(ids, p.id)
	}
	agree(t, nodes)
	agreed := time.Now()
	t.Logf("agreed %v after the storm", agreed.Sub(begin))
	// On a busy machine leases with a TTL of one second are lost even without a fault.
	if lost := s.samples.lost(); lost.After(begin) {
		t.Logf("the last lease was lost %v after the storm", lost.Sub(begin))
		begin = lost
	}
	require.Less(t, agreed.Sub(begin), 10*time.Second)
	require.Eventually(t, func() bool {
		line := nodesOf(t, queueOf(t, cli, s.name))
		slices.Sort(line)
		return slices.Equal(line, ids)
	}, etcdtest.Patience, 10*time.Millisecond)
	for _, p := range s.seats {
		p.end()
		require.Equal(t, elector.Unknown, p.life.Load().Status().Role())
	}
	// A lease whose revocation etcd does not confirm within the TTL of one second is left to
	// expire, as are the leases of grants whose replies were lost.
	require.Eventually(t, func() bool {
		leases, err := cli.Leases(etcdtest.Context(t))
		return err == nil && len(leases.Leases) == 0 && len(queueOf(t, cli, s.name)) == 0
	}, etcdtest.Patience, 50*time.Millisecond)
}

// written counts the guarded writes that were applied and checks their tokens.
func (s *storm) written() int {
	t := s.t
	cli := s.cluster.Client(t)
	now, err := cli.Get(etcdtest.Context(t), "of-"+s.name)
	require.NoError(t, err)
	require.Len(t, now.Kvs, 1)
	last, count := int64(0), 0
	ctx, cancel := context.WithTimeout(context.Background(), etcdtest.Patience)
	defer cancel()
	for resp := range cli.Watch(ctx, "of-"+s.name, clientv3.WithRev(1)) {
		require.NoError(t, resp.Err())
		for _, ev := range resp.Events {
			token, err := strconv.ParseInt(string(ev.Kv.Value), 10, 64)
			require.NoError(t, err)
			require.GreaterOrEqual(t, token, last, "I3: a write of a former leader at revision %d", ev.Kv.ModRevision)
			require.Less(t, token, ev.Kv.ModRevision)
			last = token
			count++
			if ev.Kv.ModRevision == now.Kvs[0].ModRevision {
				return count
			}
		}
	}
	require.FailNow(t, "the history has no end")
	return 0
}
