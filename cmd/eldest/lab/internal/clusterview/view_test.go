package clusterview

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

func TestElectionsAppear(t *testing.T) {
	t.Parallel()
	e, dir, conn := shared(t)
	first, lease := e.registers(dir+"a", "anna")
	e.registers(dir+"a", "bert")
	e.puts(dir+"a/notes", "of nobody")
	e.registers(dir+"x/b", "carl")
	e.puts(dir+"other/1f", "without a lease")
	for _, hidden := range []string{keys.Request("a", int64(lease)), keys.Heartbeat(int64(lease))} {
		e.puts(dir+hidden, "internal", clientv3.WithLease(lease))
	}
	p := open(t, conn, Config{})
	require.Equal(t, "cluster", p.Info().Mode)
	require.False(t, p.Info().Write)
	require.Equal(t, conn.Endpoints, p.Info().Endpoints)

	p.queued("a", "anna", "bert", "of nobody")
	p.queued("x/b", "carl")
	p.until("the list has both", func() bool { return len(p.list()) == 2 })
	list := p.list()
	require.Equal(t, []feed.ElectionState{
		{Name: "a", Candidates: 2, Leader: "anna", Token: p.place("a", 0).Create},
		{Name: "x/b", Candidates: 1, Leader: "carl", Token: p.place("x/b", 0).Create},
	}, list)
	require.True(t, p.place("a", 2).Foreign)
	require.Equal(t, "a/notes", p.place("a", 2).Key, "without the namespace")

	// The time left of the leases.
	p.until("the lease's time is known", func() bool { return p.Places("a")[0].LeftMS >= 0 })
	place := p.place("a", 0)
	require.EqualValues(t, 60000, place.GrantedMS)
	require.Greater(t, place.LeftMS, 1000.0)
	require.LessOrEqual(t, place.LeftMS, 60000.0)
	require.EqualValues(t, unknown, p.place("a", 2).LeftMS)

	// Changes. An election that is new has all keys of its range.
	e.puts(first, "anna again", clientv3.WithLease(lease))
	p.queued("a", "anna again", "bert", "of nobody")
	require.Greater(t, p.place("a", 0).Mod, p.place("a", 0).Create)
	e.deletes(first)
	p.queued("a", "bert", "of nobody")
	p.until("the list has the new leader", func() bool { return p.list()[0].Leader == "bert" })
	e.puts(dir+"c/old", "of nobody")
	e.registers(dir+"c", "dora")
	p.queued("c", "of nobody", "dora")
	p.until("the list has the new election", func() bool { return len(p.list()) == 3 && p.list()[1].Leader == "dora" })
	problems := slices.DeleteFunc(p.problems(), func(problem string) bool {
		return strings.HasPrefix(problem, "no answer from etcd at ") // within a second, on a busy machine
	})
	require.Empty(t, problems)
}

// Elections are found among keys that are only named like candidates.
func TestElectionsAmongOtherKeys(t *testing.T) {
	t.Parallel()
	e, dir, conn := shared(t)
	other, err := e.Grant(etcdtest.Context(t), 60)
	require.NoError(t, err)
	for i := range 3 * pageLeases {
		e.puts(fmt.Sprintf("%susers/%d", dir, i+1), "not a candidate")
		if i%10 == 0 {
			e.puts(fmt.Sprintf("%ssession%d/%x", dir, i, i+1), "attached to another lease", clientv3.WithLease(other.ID))
		}
	}
	var want []string
	for _, name := range []string{"a", "session150", "users/2", "users2", "z/z"} {
		e.registers(dir+name, name)
		want = append(want, name)
	}
	p := open(t, conn, Config{})
	p.until("the list", func() bool { return p.list() != nil })
	list := p.list()
	var names []string
	for _, line := range list {
		names = append(names, line.Name)
	}
	require.Equal(t, want, names)
	require.Equal(t, "z/z", list[4].Leader)
	require.Equal(t, "attached to another lease", p.place("session150", 0).Who, "a queue has all keys of its range")

	// They cost one request for each pageLeases keys.
	var recorder etcdtest.Recorder
	client := etcdtest.Shared(t).Client(t, recorder.Attach)
	client.KV = namespace.NewKV(client.KV, dir)
	names, _, err = (&View{cfg: Config{Client: client, Conn: conn}}).names(etcdtest.Context(t))
	require.NoError(t, err)
	require.Equal(t, want, names)
	require.LessOrEqual(t, recorder.Count("Txn"), 4)
}

// Leaders that follow one another at once are all shown.
func TestEveryLeaderIsShown(t *testing.T) {
	t.Parallel()
	e, dir, conn := shared(t)
	p := open(t, conn, Config{Election: "svc"})
	p.until("the empty queue", func() bool { return p.Queue("svc") != nil && len(p.Places("svc")) == 0 })
	names := []string{"a", "b", "c", "d", "e"}
	var registered []string
	for _, name := range names {
		key, _ := e.registers(dir+"svc", name)
		registered = append(registered, key)
	}
	for _, key := range registered {
		e.deletes(key)
	}
	e.registers(dir+"svc", "last")
	p.queued("svc", "last")
	var leaders []string
	all := p.All()
	for _, event := range all {
		if event.Type == feed.Queue && len(event.Queue.Places) > 0 && !slices.Contains(leaders, event.Queue.Places[0].Who) {
			leaders = append(leaders, event.Queue.Places[0].Who)
		}
	}
	require.Equal(t, append(names, "last"), leaders)
}

// A watch that is interrupted, and whose revisions are compacted, is begun anew.
func TestCompaction(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	e := etcd{c.Client(t), t}
	host := c.Host(t)
	first, _ := e.registers("svc", "anna")
	p := open(t, flags(host.Endpoints()...), Config{})
	p.queued("svc", "anna")

	host.Refuse()
	host.Reset()
	e.registers("svc", "bert")
	e.deletes(first)
	e.registers("new", "carl")
	_, err := c.Compact(etcdtest.Context(t))
	require.NoError(t, err)
	host.Mend()
	p.queued("svc", "bert")
	p.queued("new", "carl")
	e.registers("new", "dora")
	p.queued("new", "carl", "dora")
	problems := p.problems()
	require.NotContains(t, strings.Join(problems, "\n"), "compacted", "nothing is wrong")
}

// A user that may read only some keys is told what to do. No password is shown.
func TestRestrictedUser(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	e := etcd{c.Client(t), t}
	ctx := etcdtest.Context(t)
	key, _ := e.registers("svc", "anna")
	const password = "not to be shown"
	do := func(_ any, err error) { t.Helper(); require.NoError(t, err) }
	do(e.UserAdd(ctx, "root", password))
	do(e.RoleAdd(ctx, "root"))
	do(e.UserGrantRole(ctx, "root", "root"))
	do(e.RoleAdd(ctx, "reader"))
	do(e.RoleGrantPermission(ctx, "reader", "svc/", "svc0", clientv3.PermissionType(clientv3.PermRead)))
	do(e.UserAdd(ctx, "rita", password))
	do(e.UserGrantRole(ctx, "rita", "reader"))
	do(e.AuthEnable(ctx))

	conn := func() *connect.Flags {
		conn := flags(c.Endpoints()...)
		conn.User, conn.Password = "rita", password
		return conn
	}
	all := open(t, conn(), Config{})
	all.reports(`user "rita" may not read all keys`, "eldest lab ELECTION")
	one := open(t, conn(), Config{Election: "svc", Write: true})
	one.queued("svc", "anna")
	one.until("the lease's time is known", func() bool { return one.Places("svc")[0].LeftMS >= 0 })
	one.until("the member is shown", func() bool { return len(one.Members()) == 1 && one.Members()[0].State == "leader" })
	_, err := one.does(feed.Action{Do: feed.Evict, Election: "svc", Key: key, Token: one.place("svc", 0).Create})
	require.ErrorContains(t, err, "needs a role")
	require.NotErrorIs(t, err, feed.ErrRefused, "etcd has refused it")

	other := open(t, conn(), Config{Election: "other"})
	other.reports(`user "rita" needs a role`)
	for _, p := range []*page{all, one, other} {
		events := p.All()
		text, err := json.Marshal([]any{events, p.Info()})
		require.NoError(t, err)
		require.NotContains(t, string(text), password)
	}
}

func TestEvictFromThePage(t *testing.T) {
	t.Parallel()
	e, dir, conn := shared(t)
	for _, election := range []string{"svc", "x/svc"} { // the second one is in a directory
		first, _ := e.registers(dir+election, "anna")
		e.registers(dir+election, "bert")
		p := open(t, conn, Config{})
		p.queued(election, "anna", "bert")
		evict := feed.Action{Do: feed.Evict, Election: election, Key: strings.TrimPrefix(first, dir), Token: p.place(election, 0).Create}
		act, err := p.does(evict)
		require.ErrorIs(t, err, feed.ErrRefused)
		require.Contains(t, act.Error, "--write")
		require.True(t, e.exists(first))
		require.Empty(t, p.Done().Steps)

		p = open(t, conn, Config{Write: true})
		require.True(t, p.Info().Write)
		stale := evict
		stale.Token--
		act, err = p.does(stale)
		require.ErrorIs(t, err, feed.ErrRefused)
		require.Contains(t, act.Error, "it now has token")
		require.True(t, e.exists(first))

		_, err = p.does(evict)
		require.NoError(t, err)
		require.False(t, e.exists(first))
		p.queued(election, "bert")
		require.Len(t, p.Done().Steps, 1)
		require.Equal(t, evict, p.Done().Steps[0].Action)

		act, err = p.does(evict)
		require.ErrorIs(t, err, feed.ErrRefused)
		require.Contains(t, act.Error, "is not in the queue")
		require.Len(t, p.Done().Steps, 1)
	}
}

// Candidates of a real program, which take part in transfers, and one put by hand, which does not.
func TestTransferFromThePage(t *testing.T) {
	t.Parallel()
	e, _, _ := shared(t)
	name := etcdtest.Election(t)
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	conn := flags(e.Endpoints()...)
	p := open(t, conn, Config{Election: name, Write: true})
	for i, id := range []string{"n1", "n2"} {
		running.Go(func() {
			_ = elector.Run(ctx, e.Client, name, func(ctx context.Context, _ *elector.Leadership) error {
				<-ctx.Done()
				return nil
			}, elector.WithNodeID(id), elector.WithTTL(30*time.Second), elector.WithLogger(slog.New(slog.DiscardHandler)),
				func(c *elector.Config) { c.Transfer = true })
		})
		p.queued(name, []string{"n1", "n2"}[:i+1]...)
	}
	second := p.place(name, 1)
	order := feed.Action{Do: feed.Transfer, Election: name, Key: second.Key, Token: second.Create}
	stale := order
	stale.Token++
	_, err := p.does(stale)
	require.ErrorIs(t, err, feed.ErrRefused)

	// For a moment after it has registered, a candidate does not take part yet.
	etcdtest.Eventually(t, func() bool {
		_, err := p.does(order)
		if err != nil {
			require.ErrorIs(t, err, feed.ErrRefused)
			require.ErrorContains(t, err, "take part")
		}
		return err == nil
	}, "the transfer")
	p.until("the target leads", func() bool { who := p.who(name); return len(who) > 0 && who[0] == "n2" })
	require.Len(t, p.Done().Steps, 1)
	_, err = p.does(order)
	require.ErrorContains(t, err, "leads already")

	deaf := etcdtest.Election(t)
	e.registers(deaf, "by hand")
	target, _ := e.registers(deaf, "by hand, too")
	all := open(t, conn, Config{Election: deaf, Write: true})
	_, err = all.does(feed.Action{Do: feed.Transfer, Election: deaf, Key: target, Token: all.place(deaf, 1).Create})
	require.ErrorIs(t, err, feed.ErrRefused)
	require.ErrorContains(t, err, "does not take part")
	require.ErrorContains(t, err, "eldest evict")
}

func TestOtherActionsAreRefused(t *testing.T) {
	t.Parallel()
	_, _, conn := shared(t)
	p := open(t, conn, Config{Election: "svc", Write: true})
	for _, a := range []feed.Action{
		{}, {Do: feed.Kill, On: "p1"}, {Do: feed.Compact}, {Do: feed.MoveLeader, Member: 1}, {Do: feed.Add, Kind: feed.Eldest},
		{Do: feed.Evict}, {Do: feed.Evict, Election: "svc"}, {Do: feed.Evict, Election: "svc", Key: "svc/1f"},
		{Do: feed.Evict, Election: "other", Key: "other/1f", Token: 7}, {Do: feed.Evict, Election: "x/svc", Key: "x/svc/1f", Token: 7},
		{Do: feed.Evict, Election: "svc/", Key: "svc//1f", Token: 7},
		{Do: feed.Evict, Election: "svc", Key: "svc/1f", Token: 7}, {Do: feed.Transfer, Election: "svc", Key: "svc/1f", Token: 7},
	} {
		_, err := p.does(a)
		require.ErrorIs(t, err, feed.ErrRefused, "%+v", a)
	}
	before := p.All()
	for _, a := range []feed.Action{{Do: feed.Play}, {Do: feed.Reset}, {Do: feed.Evict, Key: strings.Repeat("x", 5000)}} {
		require.ErrorIs(t, p.Do(t.Context(), a), feed.ErrRefused, "%.20v", a)
	}
	_, err := p.does(feed.Action{Do: feed.Kill})
	require.ErrorIs(t, err, feed.ErrRefused)
	acts := func(all []feed.Event) (n int) {
		for _, e := range all {
			if e.Type == feed.Acted {
				n++
			}
		}
		return n
	}
	after := p.All()
	require.Equal(t, acts(before)+1, acts(after), "these have no event")
	require.ErrorIs(t, p.Play(t.Context(), feed.Scenario{Steps: []feed.Step{{Action: feed.Action{Do: feed.Evict}}}}), feed.ErrRefused)
	require.NotNil(t, p.Done().Steps)
	require.Empty(t, p.Done().Steps)
}

func TestMembers(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3})
	p := open(t, flags(c.Endpoints()...), Config{})
	states := func() string {
		var states []string
		for _, m := range p.Members() {
			states = append(states, m.State)
		}
		slices.Sort(states)
		return strings.Join(states, " ")
	}
	p.until("one leads", func() bool { return states() == "follower follower leader" })
	members := p.Members()
	for i, m := range members {
		require.Equal(t, c.Member(i).Name, m.Name)
		require.Equal(t, c.Endpoints()[i], m.Endpoint)
		require.Positive(t, m.Revision)
		require.Positive(t, m.RaftTerm)
	}
	leader, err := c.Leader(etcdtest.Context(t))
	require.NoError(t, err)
	require.NoError(t, c.Member(leader).Kill())
	p.until("one is down, and another one leads", func() bool { return states() == "down follower leader" })
	require.Equal(t, c.Member(leader).Name, p.Members()[leader].Name, "also while it is down")
	require.NoError(t, c.Member(leader).Restart(etcdtest.Context(t)))
	p.until("it is up", func() bool { return states() == "follower follower leader" })
}

// While etcd cannot be reached, that is shown; and the end does not wait for it.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	conn := flags(etcdtest.Nowhere(t))
	conn.CommandTimeout = 200 * time.Millisecond
	p := open(t, conn, Config{})
	p.reports("no answer from etcd at " + conn.Endpoints[0])
	p.until("the member is down", func() bool { return len(p.Members()) == 1 && p.Members()[0].State == "down" })
	began := time.Now()
	require.NoError(t, p.Close())
	require.Less(t, time.Since(began), etcdtest.Patience/4)
	list := p.list()
	require.Empty(t, list, "that nothing was read does not mean that there is nothing")
}

// Nothing is asked that only an open page needs, while none is open.
func TestNothingIsPolledForNoPage(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	etcd{c.Client(t), t}.registers(name, "anna")
	var recorder etcdtest.Recorder
	client := c.Client(t, recorder.Attach)
	v, err := New(Config{Client: client, Conn: flags(c.Endpoints()...), Election: name})
	require.NoError(t, err)
	defer func() { require.NoError(t, v.Close()) }()
	etcdtest.Eventually(t, func() bool { return len(v.polled()) == 1 }, "the queue was read")
	asked := func() bool { return recorder.Count("LeaseTimeToLive", "Status") > 0 }
	etcdtest.Never(t, asked, 2*leaseRound, "a request without a page")
	_, err = v.Log().After(etcdtest.Context(t), 0, 1)
	require.NoError(t, err)
	etcdtest.Eventually(t, asked, "a request for the page")
}

func TestInvalid(t *testing.T) {
	_, err := New(Config{})
	require.Error(t, err)
	_, err = New(Config{Client: &clientv3.Client{}, Conn: flags("h:1"), Election: "a/b"})
	require.ErrorContains(t, err, "contains '/'")
}
