package balance_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/examples/customise/balance"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

// Requirements 30 and 33: many elections on one session, and a cap for each process.
func TestMain(m *testing.M) { etcdtest.Main(m) }

const k = 10

// group is a group under test, whose members run until stop is called.
type group struct {
	*etcdtest.Env
	shards []string
	stop   map[string]func()

	mu     sync.Mutex
	owners map[string]string // the present leader of each shard
	last   map[string]*elector.Leadership
	wins   int
	// expected is the number of wins if only the necessary shards move.
	expected int
	assigned map[string]string
}

func newGroup(t *testing.T) *group {
	t.Helper()
	env := etcdtest.NewEnv(t, etcdtest.Shared(t))
	return &group{
		Env: env, shards: names(env.Election+"-shard", k), stop: map[string]func(){},
		owners: map[string]string{}, last: map[string]*elector.Leadership{},
	}
}

// join makes a member take part.
func (g *group) join(name string, client *clientv3.Client, ttl time.Duration) {
	ctx, end := context.WithCancel(g.Ctx)
	done := etcdtest.Go(func() error {
		return balance.Run(ctx, balance.Config{
			Group: g.Election, Member: name, Shards: g.shards, Client: client, Lead: g.lead(name),
			Options: []elector.Option{elector.WithTTL(ttl), func(cfg *elector.Config) { cfg.Candidate.WatchCheck = -1 }},
		})
	})
	g.stop[name] = func() {
		end()
		require.ErrorIs(g.T, etcdtest.Take(g.T, done, "the end of Run"), context.Canceled)
		delete(g.stop, name)
	}
}

// lead returns the lead function of a member. It reports two leaders of one shard.
func (g *group) lead(name string) func(context.Context, *elector.Leadership) error {
	return func(ctx context.Context, l *elector.Leadership) error {
		shard := l.Election()
		g.mu.Lock()
		if last := g.last[shard]; last != nil && (last.Holds(0) || last.Token() >= l.Token()) {
			g.T.Errorf("%s leads %s with token %d beside %s with token %d", name, shard, l.Token(), g.owners[shard], last.Token())
		}
		g.owners[shard], g.last[shard] = name, l
		g.wins++
		g.mu.Unlock()
		<-ctx.Done()
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.last[shard] == l {
			delete(g.owners, shard)
		}
		return nil
	}
}

// settled waits until each shard is led by its owner among the members, and compares the result with
// the cap and with the expected number of wins.
func (g *group) settled(members ...string) (moves int) {
	g.T.Helper()
	want := balance.Assign(g.shards, members)
	moves = moved(g.assigned, want)
	g.expected += moves
	g.assigned = want
	g.Until("each shard is led by its owner", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return maps.Equal(g.owners, want)
	})
	for _, name := range members {
		led := 0
		for _, owner := range want {
			if owner == name {
				led++
			}
		}
		require.LessOrEqual(g.T, led, balance.Cap(k, len(members)))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Equal(g.T, g.expected, g.wins, "%v: something moved that need not", members)
	return moves
}

// Members join, leave and are partitioned. Each time the group settles within the cap, with the
// moves that are necessary and no others, and with a few requests for each; two members never lead
// one shard; and in the end nothing is left.
func TestJoinLeaveCrash(t *testing.T) {
	g := newGroup(t)
	client := func() *clientv3.Client { return g.Cluster.Client(t, g.Rec.Attach) }
	const long = 2 * time.Minute
	g.join("a", client(), long)
	require.Equal(t, k, g.settled("a"))
	g.join("b", client(), long)
	g.settled("a", "b")

	g.Rec.Reset()
	g.join("c", client(), long)
	moves := g.settled("a", "b", "c")
	require.Positive(t, moves)
	require.LessOrEqual(t, g.Rec.Count("Txn"), 1+3*moves, "to register, and for each shard to give, to take and to prove")
	require.Zero(t, g.Rec.Count("Put", "DeleteRange"))

	g.stop["b"]()
	g.settled("a", "c")
	host := g.Cluster.Host(t)
	g.join("d", host.Client(t), 4*time.Second)
	g.settled("a", "c", "d")
	host.Cut()
	g.settled("a", "c")
	host.Mend()
	g.settled("a", "c", "d")
	g.join("b", client(), long)
	g.settled("a", "b", "c", "d")
	for len(g.stop) > 0 {
		members := slices.Sorted(maps.Keys(g.stop))
		g.stop[members[0]]()
		if len(members) > 1 {
			g.settled(members[1:]...)
		}
	}
	left, err := g.Admin.Get(g.Ctx, g.Election, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	require.Empty(t, left.Kvs)
}

// A member's key in the group is deleted by hand: the member registers again, and takes part as before.
// A key that is no member's changes nothing.
func TestPlaceRemoved(t *testing.T) {
	g := newGroup(t)
	g.join("a", g.Cluster.Client(t), time.Minute)
	g.settled("a")
	place := func() observe.Entry {
		queue, err := observe.Queue(g.Ctx, g.Admin, nil, g.Election)
		require.NoError(t, err)
		if len(queue) == 0 {
			return observe.Entry{}
		}
		return queue[0]
	}
	removed := place()
	require.NoError(t, etcdtest.Err(g.Admin.Delete(g.Ctx, removed.Key)))
	g.Until("it registers again", func() bool { return place().Token > removed.Token })
	foreign := keys.Candidate(g.Election, 1)
	g.Put(foreign, "\xff\xff")
	g.join("b", g.Cluster.Client(t), time.Minute)
	g.Until("each shard is led by its owner", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return maps.Equal(g.owners, balance.Assign(g.shards, []string{"a", "b"}))
	})
	g.Remove(foreign)
	g.stop["a"]()
	g.stop["b"]()
}

func TestBadInput(t *testing.T) {
	fine := balance.Config{
		Group: "group", Member: "a", Shards: []string{"a", "b"}, Client: etcdtest.Shared(t).Client(t),
		Lead: func(context.Context, *elector.Leadership) error { return nil },
	}
	for name, change := range map[string]func(*balance.Config){
		"no function":   func(c *balance.Config) { c.Lead = nil },
		"no name":       func(c *balance.Config) { c.Member = "" },
		"group a shard": func(c *balance.Config) { c.Group = c.Shards[0] },
		"bad shard":     func(c *balance.Config) { c.Shards = []string{"a/b"} },
		"bad group":     func(c *balance.Config) { c.Group = strings.Repeat("x", 2000) },
		"no client":     func(c *balance.Config) { c.Client = nil },
	} {
		cfg := fine
		change(&cfg)
		require.ErrorIs(t, balance.Run(t.Context(), cfg), eldest.ErrInvalid, name)
	}
}
