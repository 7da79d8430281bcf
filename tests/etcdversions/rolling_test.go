package main

import (
	"context"
	"flag"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

var rolling = flag.String("rolling", "", "the `version` to which TestRolling upgrades, such as 3.6")

// ttl is longer than any step takes, so that no step forces the end of a tenure.
const ttl = 30 * time.Second

// A cluster of three members is upgraded, member by member, and downgraded again where etcd can do
// that, while elections go on: one tenure lasts through all of it, with the same token and with guarded
// writes at each step; in another election leaders follow each other. Members are killed, not stopped in
// an orderly way, which is harder. Fails if a step ends the tenure, if two candidates lead at the same
// time, or if tokens do not increase.
func TestRolling(t *testing.T) {
	if *rolling == "" {
		t.Skip("SKIPPED: it builds two versions of etcd; go run ./tests/etcdversions -suites mixed runs it")
	}
	from, to := neighbours(t, *rolling)
	c := etcdtest.Start(t, etcdtest.Config{
		Members: 3, Heartbeat: 50 * time.Millisecond, Election: 500 * time.Millisecond, Etcd: from.binary,
	})
	short := func(l *lease.Config, _ *election.Config) { l.TTL = ttl }
	leader := electiontest.Join(t, c.Client(t), etcdtest.Election(t), short)
	tenure := leader.Lead(t)
	waiter := electiontest.Join(t, c.Client(t), leader.Candidate.Election(), short)
	waits := waiter.Queue(t)
	others := churn(t, c, 3)

	check := func(step string) {
		t.Helper()
		before := others.wins.Load()
		etcdtest.Eventually(t, func() bool { return guarded(tenure, step) }, "%s: a guarded write of the leader", step)
		etcdtest.Eventually(t, func() bool { return others.wins.Load() > before+3 }, "%s: other elections", step)
		require.NoError(t, tenure.Err(), "%s: the tenure has ended", step)
		require.True(t, tenure.Holds(0), step)
		t.Logf("%s: cluster version %s, %d tenures in the other election", step, clusterVersion(t, c), others.wins.Load())
	}
	move := func(members []int, to build) {
		for _, i := range members {
			require.NoError(t, c.Member(i).Kill())
			c.Member(i).Use(to.binary)
			require.NoError(t, c.Member(i).Restart(etcdtest.Context(t)))
			check("member " + c.Member(i).Name + " runs " + to.name)
		}
	}
	check("all run " + from.name)
	move([]int{0, 1, 2}, to)
	awaitVersion(t, c, to.name)
	check("upgraded to " + to.name)
	if to.name >= "3.6" { // older ones cannot be downgraded
		downgrade(t, c, from.name)
		move([]int{2, 1, 0}, from)
		awaitVersion(t, c, from.name)
		check("downgraded to " + from.name)
	}
	others.end(t)
	require.NoError(t, tenure.Resign(etcdtest.Context(t)))
	next := electiontest.Wins(t, waits)
	require.Greater(t, next.Token(), tenure.Token())
}

// build is a server that can be started.
type build struct{ name, binary string }

// neighbours builds a version and the one before it.
func neighbours(t *testing.T, name string) (from, to build) {
	ctx := etcdtest.ContextFor(t, 3*time.Minute)
	for i, s := range servers {
		if s.name != name {
			continue
		}
		require.NotZero(t, i, "there is no version before %s", name)
		for _, b := range []struct {
			server
			to *build
		}{{servers[i-1], &from}, {s, &to}} {
			binary, err := b.binary(ctx)
			require.NoError(t, err)
			*b.to = build{b.name, binary}
		}
		return from, to
	}
	require.FailNow(t, "no such version", name)
	return from, to
}

// guarded reports whether a guarded write of the tenure was carried out. While a member is away, its
// outcome may be unknown.
func guarded(l *election.Leadership, value string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	resp, err := l.Txn(ctx).Then(clientv3.OpPut("rolling/"+l.Election(), value)).Commit()
	return err == nil && resp.Succeeded
}

// downgrade tells the cluster that it will be downgraded, as etcdctl downgrade enable does, and waits
// until each member has converted its data: an older etcd refuses data of a newer one.
func downgrade(t *testing.T, c *etcdtest.Cluster, to string) {
	t.Helper()
	cli := c.Client(t)
	etcdtest.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := cli.Downgrade(ctx, clientv3.DowngradeEnable, to+".0")
		if err != nil {
			t.Logf("downgrade enable %s: %v", to, err)
			time.Sleep(500 * time.Millisecond)
		}
		return err == nil
	}, "the permission to downgrade to %s", to)
	awaitVersion(t, c, to)
	for _, endpoint := range c.Endpoints() {
		etcdtest.Eventually(t, func() bool {
			status, err := cli.Status(etcdtest.Context(t), endpoint)
			return err == nil && status.StorageVersion == to+".0"
		}, "the data of %s in the format of %s", endpoint, to)
	}
	// A member commits to its file ten times a second, and this test kills members, which then lose what
	// was not committed. A member that is stopped in an orderly way commits.
	require.NoError(t, c.Defragment(etcdtest.Context(t)))
}

// clusterVersion is the version that the members have agreed on.
func clusterVersion(t *testing.T, c *etcdtest.Cluster) string {
	v, err := c.Version(etcdtest.Context(t))
	require.NoError(t, err)
	return v
}

func awaitVersion(t *testing.T, c *etcdtest.Cluster, name string) {
	t.Helper()
	etcdtest.Eventually(t, func() bool { return clusterVersion(t, c) == name+".0" }, "the cluster version %s", name)
}

// contest is an election in which leaders follow each other until end.
type contest struct {
	wins    atomic.Int64
	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	newest *election.Leadership
	token  eldest.Token
}

// churn starts candidates that lead for a moment and resign, again and again.
func churn(t *testing.T, c *etcdtest.Cluster, candidates int) *contest {
	ctx, stop := context.WithCancel(context.Background())
	o := &contest{stop: stop}
	name := etcdtest.Election(t)
	for range candidates {
		p := electiontest.Join(t, c.Client(t), name, func(l *lease.Config, _ *election.Config) { l.TTL = ttl })
		o.running.Go(func() {
			for ctx.Err() == nil {
				l, err := p.Candidate.Campaign(ctx)
				if ctx.Err() != nil {
					return
				}
				if !assert.NoError(t, err) {
					return
				}
				o.won(t, l)
				time.Sleep(20 * time.Millisecond) // the tenure
				for l.Resign(ctx) != nil && ctx.Err() == nil {
				}
			}
		})
	}
	t.Cleanup(func() { stop(); o.running.Wait() })
	return o
}

// won checks a win against the one before it: a resignation ends the tenure before the key is deleted.
func (o *contest) won(t *testing.T, l *election.Leadership) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.newest != nil {
		assert.False(t, o.newest.Holds(0), "two candidates lead")
	}
	assert.Greater(t, l.Token(), o.token)
	o.newest, o.token = l, l.Token()
	o.wins.Add(1)
}

func (o *contest) end(t *testing.T) {
	t.Helper()
	o.stop()
	o.running.Wait()
	require.Positive(t, o.wins.Load())
}
