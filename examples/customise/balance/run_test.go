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
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/examples/customise/balance"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

const k = 10

// group is a group under test.
type group struct {
	t       *testing.T
	ctx     context.Context
	cluster *etcdtest.Cluster
	rec     *etcdtest.Recorder
	shards  []string

	mu     sync.Mutex
	owners map[string]string // the present leader of each shard
	last   map[string]*election.Leadership
	wins   int
	live   map[string]*member
	// expected is the number of wins if only the necessary shards move.
	expected int
	assigned map[string]string
}

// member is a member that runs.
type member struct {
	end     context.CancelFunc
	session *lease.Session
	result  chan error
}

func newGroup(t *testing.T) *group {
	t.Helper()
	ctx := etcdtest.ContextFor(t, 3*time.Minute)
	return &group{
		t: t, ctx: ctx, cluster: etcdtest.Shared(t), rec: &etcdtest.Recorder{}, shards: names(t.Name()+"-shard", k),
		owners: map[string]string{}, last: map[string]*election.Leadership{}, live: map[string]*member{}, assigned: map[string]string{},
	}
}

// lead returns the lead function of a member. It reports two leaders of one shard.
func (g *group) lead(name string) func(context.Context, *election.Leadership) error {
	return func(ctx context.Context, l *election.Leadership) error {
		shard := l.Election()
		g.mu.Lock()
		if last := g.last[shard]; last != nil && (last.Holds(0) || last.Token() >= l.Token()) {
			g.t.Errorf("%s leads %s with token %d beside %s with token %d", name, shard, l.Token(), g.owners[shard], last.Token())
		}
		g.owners[shard], g.last[shard] = name, l
		g.wins++
		g.mu.Unlock()
		<-ctx.Done()
		g.mu.Lock()
		if g.last[shard] == l {
			delete(g.owners, shard)
		}
		g.mu.Unlock()
		return nil
	}
}

// join makes a member take part.
func (g *group) join(name string, client *clientv3.Client, ttl time.Duration) *member {
	g.t.Helper()
	session, err := lease.Open(g.ctx, lease.Config{Lease: client, Options: lease.Options{TTL: ttl}})
	require.NoError(g.t, err)
	ctx, end := context.WithCancel(g.ctx)
	m := &member{end: end, session: session, result: make(chan error, 1)}
	go func() {
		m.result <- balance.Run(ctx, balance.Config{
			Group: g.t.Name(), Member: name, Shards: g.shards, Session: session, KV: client, Watcher: client, Lead: g.lead(name),
			Candidate: election.Options{WatchCheck: -1, Timeout: 10 * time.Second},
		})
	}()
	g.mu.Lock()
	g.live[name] = m
	g.mu.Unlock()
	return m
}

// leave ends a member and waits for its end.
func (g *group) leave(name string) {
	g.t.Helper()
	m := g.live[name]
	m.end()
	require.ErrorIs(g.t, g.returned(m), context.Canceled)
	require.NoError(g.t, m.session.Close(g.ctx))
	g.forget(name)
}

// closed closes the session of a member that has lost it: until then the session tries to revoke
// the lease, for a TTL at most, which may be longer than the rest of the test.
func (g *group) closed(m *member) {
	g.t.Helper()
	if err := m.session.Close(g.ctx); err != nil {
		require.ErrorIs(g.t, err, eldest.ErrUnavailable) // the lease has expired by itself
	}
}

func (g *group) forget(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.live, name)
}

func (g *group) returned(m *member) error {
	g.t.Helper()
	select {
	case err := <-m.result:
		return err
	case <-g.ctx.Done():
		require.FailNow(g.t, "Run does not return")
		return nil
	}
}

// settled waits until each shard is led by its owner, and compares the result with the cap and with
// the expected number of wins.
func (g *group) settled(what string) (moves int) {
	g.t.Helper()
	want := balance.Assign(g.shards, slices.Collect(maps.Keys(g.live)))
	moves = moved(g.assigned, want)
	g.expected += moves
	g.assigned = want
	ok := func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return maps.Equal(g.owners, want)
	}
	if !assertEventually(g.ctx, ok) {
		g.mu.Lock()
		defer g.mu.Unlock()
		require.FailNow(g.t, what, "led %v, want %v", g.owners, want)
	}
	load := map[string]int{}
	for _, owner := range want {
		load[owner]++
		require.LessOrEqual(g.t, load[owner], balance.Cap(k, len(g.live)))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Equal(g.t, g.expected, g.wins, "%s: something moved that need not", what)
	return moves
}

func assertEventually(ctx context.Context, condition func() bool) bool {
	for !condition() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Millisecond):
		}
	}
	return true
}

// Members join, leave and are partitioned. Each time the group settles within the cap, with the
// moves that are necessary and no others, and with a few requests for each; two members never lead
// one shard; and in the end nothing is left.
func TestJoinLeaveCrash(t *testing.T) {
	g := newGroup(t)
	client := func() *clientv3.Client { return g.cluster.Client(t, g.rec.Attach) }
	const long = 2 * time.Minute
	g.join("a", client(), long)
	require.Equal(t, k, g.settled("a joins"))
	g.join("b", client(), long)
	g.settled("b joins")

	g.rec.Reset()
	g.join("c", client(), long)
	moves := g.settled("c joins")
	require.Positive(t, moves)
	require.LessOrEqual(t, g.rec.Count("Txn"), 1+3*moves, "to register, and for each shard to give, to take and to prove")
	require.Zero(t, g.rec.Count("Put", "DeleteRange"))

	g.leave("b")
	g.settled("b leaves")

	host := g.cluster.Host(t)
	d := g.join("d", host.Client(t), 5*time.Second)
	g.settled("d joins")
	host.Cut()
	require.ErrorIs(t, g.returned(d), eldest.ErrSessionLost)
	g.forget("d")
	g.settled("d is cut off")
	host.Mend()
	g.closed(d)

	g.join("b", client(), long)
	g.settled("b comes back")
	for _, name := range []string{"a", "b", "c"} {
		g.leave(name)
		if len(g.live) > 0 {
			g.settled(name + " leaves")
		}
	}
	left, err := g.cluster.Client(t).Get(g.ctx, t.Name(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	require.Empty(t, left.Kvs)
}

// A member's key in the group is deleted by hand: the member gives up its shards, Run returns
// eldest.ErrDeposed, and the other members take the shards.
func TestPlaceRemoved(t *testing.T) {
	g := newGroup(t)
	client := g.cluster.Client(t)
	a := g.join("a", client, time.Minute)
	g.settled("a joins")
	g.join("b", client, time.Minute)
	g.settled("b joins")
	_, err := client.Delete(g.ctx, keys.Candidate(t.Name(), int64(a.session.ID())))
	require.NoError(t, err)
	require.ErrorIs(t, g.returned(a), eldest.ErrDeposed)
	g.forget("a")
	g.settled("a is removed")
	g.leave("b")
	require.NoError(t, a.session.Close(g.ctx))
}

func TestBadInput(t *testing.T) {
	g := newGroup(t)
	client := g.cluster.Client(t)
	session, err := lease.Open(g.ctx, lease.Config{Lease: client})
	require.NoError(t, err)
	fine := balance.Config{
		Group: t.Name(), Member: "a", Shards: g.shards, Session: session, KV: client, Watcher: client, Lead: g.lead("a"),
	}
	for name, change := range map[string]func(*balance.Config){
		"no session":    func(c *balance.Config) { c.Session = nil },
		"no function":   func(c *balance.Config) { c.Lead = nil },
		"no name":       func(c *balance.Config) { c.Member = "" },
		"group a shard": func(c *balance.Config) { c.Group = c.Shards[0] },
		"bad shard":     func(c *balance.Config) { c.Shards = []string{"a/b"} },
		"bad group":     func(c *balance.Config) { c.Group = strings.Repeat("x", 2000) },
		"no client":     func(c *balance.Config) { c.KV = nil },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fine
			change(&cfg)
			require.ErrorIs(t, balance.Run(g.ctx, cfg), eldest.ErrInvalid)
		})
	}
	require.NoError(t, session.Close(g.ctx))
}
