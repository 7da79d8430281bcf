package regressions

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/txn"
)

// Row 15. The same process is re-elected with the same value, on the same lease: key and value are
// those of its former tenure. In other implementations, which check leadership by value or by the
// key's existence, late writes of the former tenure are applied. In Eldest the guard of the old
// tenure refuses them.
//
// Fails when txn.Guard compares the value, the lease or the version.
func TestRegression15_ReelectedWithTheSameValue(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	p := join(t, c.Client(t), name, func(_ *lease.Config, e *election.Config) { e.Value = []byte("same") })
	first := p.Lead(t)
	require.NoError(t, first.Resign(etcdtest.Context(t)))
	second := p.Lead(t)
	require.Equal(t, first.Key(), second.Key())
	require.Greater(t, second.Token(), first.Token())
	late := first.Guard()
	require.ErrorIs(t, etcdtest.Err(late.KV(p.Client).Put(etcdtest.Context(t), "data-"+name, "late")), eldest.ErrResigned, "refused on this side")
	late.Alive = nil // as if the end were not known on this side
	_, err := late.KV(p.Client).Put(etcdtest.Context(t), "data-"+name, "late")
	var refused *txn.GuardError
	require.ErrorAs(t, err, &refused, "late work of the former tenure")
	require.Equal(t, first.Token(), refused.Wanted)
	require.Equal(t, second.Token(), refused.Found)
	data, err := p.Client.Get(etcdtest.Context(t), "data-"+name)
	require.NoError(t, err)
	require.Empty(t, data.Kvs)
	require.NoError(t, etcdtest.Err(second.KV().Put(etcdtest.Context(t), "data-"+name, "new")))
	require.ErrorIs(t, first.Resign(etcdtest.Context(t)), nil)
	require.NoError(t, second.Err(), "resigning the old tenure again ended the new one")
}

// Row 16. A hand-over right after queueing, and on a store with 300 writes a second. In other
// implementations the watch has a start revision in the past, and the server handles such watches
// every 100 ms: the median hand-over took 83 ms. In Eldest it takes a round trip.
//
// Fails when the predecessor is watched from a revision (clientv3.WithRev of the registration's, in
// internal/watch).
func TestRegression16_HandoverIsPrompt(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, writes := range []bool{false, true} {
		t.Run(map[bool]string{false: "right after queueing", true: "300 writes a second"}[writes], func(t *testing.T) {
			name := etcdtest.Election(t)
			if writes {
				ctx, cancel := context.WithCancel(context.Background())
				var writing sync.WaitGroup
				defer writing.Wait()
				defer cancel()
				cli := c.Client(t)
				writing.Go(func() {
					tick := time.NewTicker(time.Second / 300)
					defer tick.Stop()
					for ctx.Err() == nil {
						<-tick.C
						_, _ = cli.Put(ctx, "write", "") // the last one is cancelled
					}
				})
			}
			var rec etcdtest.Recorder
			a, b := join(t, c.Client(t), name), join(t, c.Client(t, rec.Attach), name)
			byHand := handedOver(t, c.Client(t), c.Client(t), "by-hand-"+name)
			var took, least []time.Duration
			const handovers = 15
			for range handovers {
				least = append(least, byHand())
				leader := a.Lead(t)
				result := b.Queue(t)
				if writes {
					etcdtest.Take(t, b.Waiting, "its wait")
				}
				begin := time.Now()
				require.NoError(t, leader.Resign(etcdtest.Context(t)))
				next := electiontest.Wins(t, result)
				took = append(took, next.At.Sub(begin))
				require.NoError(t, next.Resign(etcdtest.Context(t)))
			}
			for _, call := range rec.Calls("Watch") {
				create := call.Request.(*etcdserverpb.WatchRequest).GetCreateRequest()
				if create != nil && string(create.Key) == a.Candidate.Key() {
					require.Zero(t, create.StartRevision, "a watch of the predecessor with a start revision")
				}
			}
			slices.Sort(took)
			slices.Sort(least)
			t.Logf("median %v; by hand: median %v", took[handovers/2], least[handovers/2])
			// Half of the server's interval for watches with an old start revision, or a few times
			// as long as a hand-over by hand takes on a busy machine.
			require.Less(t, took[handovers/2], max(50*time.Millisecond, 3*least[handovers/2]), "the median of %v", took)
		})
	}
}

// handedOver returns a function that measures how long a hand-over takes by hand, without any
// package: a write, the event of it, and the read that proves it.
func handedOver(t *testing.T, from, to *clientv3.Client, key string) func() time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	events := to.Watch(ctx, key, clientv3.WithCreatedNotify())
	etcdtest.Take(t, events, "the watch")
	return func() time.Duration {
		begin := time.Now()
		require.NoError(t, etcdtest.Err(from.Put(etcdtest.Context(t), key, "")))
		etcdtest.Take(t, events, "the event")
		require.NoError(t, etcdtest.Err(to.Get(etcdtest.Context(t), key)))
		return time.Since(begin)
	}
}

// Row 17. Names that nest or are neighbours. In other implementations "svc" includes the candidates
// of "svc/a", and waits behind them. In Eldest no election includes another's keys.
//
// Fails when keys.Check allows '/', or when keys.End ends a range too late.
func TestRegression17_NestedAndNeighbouringNames(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	base := etcdtest.Election(t)
	for _, bad := range []string{base + "/", base + "/a", "/" + base, "/", ""} {
		require.ErrorIs(t, keys.Check(bad), eldest.ErrInvalid, "%q", bad)
	}
	names := []string{
		base, base + "a", base + "ab", base + "0", base + ".", base + "\x00", base + "\xff", base + "\xff\xff", base + "\xfe",
		"\xff" + base, base + "%2Fa", base + " ",
	}
	tenures := map[string]*election.Leadership{}
	for _, name := range names {
		p := join(t, c.Client(t), name)
		l, err := p.Candidate.Try(etcdtest.Context(t))
		require.NoError(t, err, "%q waits behind another election", name)
		tenures[name] = l
	}
	o, err := observe.New(observe.Config{
		Election: base, KV: c.Client(t), Watcher: c.Client(t),
		Options: observe.Options{Foreign: func(key string) {
			t.Errorf("the observer of %q sees %q", base, key)
		}},
	})
	require.NoError(t, err)
	for _, name := range names {
		require.Equal(t, []string{tenures[name].Key()}, queueOf(t, c, name), "%q", name)
	}
	// Directories are possible with namespaces. One that ends where another election begins puts
	// foreign keys into its range; they are reported, and disturb no candidate.
	cli := c.Client(t)
	kv, watcher := namespace.NewKV(cli, base+"/"), namespace.NewWatcher(cli, base+"/")
	o.Close()
	nested := join(t, cli, "a", func(_ *lease.Config, e *election.Config) { e.KV, e.Watcher = kv, watcher })
	inside := nested.Lead(t)
	require.NoError(t, tenures[base].Resign(etcdtest.Context(t)))
	p := join(t, c.Client(t), base)
	again := p.Lead(t)
	require.NoError(t, inside.Err())
	foreign := map[string]bool{base + "/" + inside.Key(): true, base + "/" + keys.Newest("a"): true}
	for range 2 {
		key := etcdtest.Take(t, p.Foreign, "the report of a foreign key").Key
		require.True(t, foreign[key], "%q", key)
		delete(foreign, key)
	}
	require.NoError(t, again.Err())
}

// Row 18. A key without a lease, made by hand, under the prefix. In other implementations all
// candidates wait behind it for ever, or crash on its name. In Eldest it is reported and ignored.
//
// Fails when txn takes every key of the range for a candidate's.
func TestRegression18_ForeignKey(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, rest := range []string{"", "by-hand", "00ff", "FF", "-1", "ffffffffffffffffff", "a/b", "\x00\xff"} {
		name := etcdtest.Election(t)
		t.Run(fmt.Sprintf("%q", rest), func(t *testing.T) {
			t.Parallel()
			key := keys.Prefix(name) + rest
			cli := c.Client(t)
			require.NoError(t, etcdtest.Err(cli.Put(etcdtest.Context(t), key, "by hand")))
			told := make(chan string, 64)
			o, err := observe.New(observe.Config{Election: name, KV: cli, Watcher: cli, Options: observe.Options{Foreign: func(key string) { told <- key }}})
			require.NoError(t, err)
			t.Cleanup(o.Close)
			require.Equal(t, key, etcdtest.Take(t, told, "the observer's report"))
			etcdtest.Eventually(t, func() bool { return o.State().Kind == eldest.Nobody }, "nobody leads")

			a, b := join(t, c.Client(t), name), join(t, c.Client(t), name)
			leader := a.Lead(t)
			require.Equal(t, election.ForeignEvent{Election: name, Key: key}, etcdtest.Take(t, a.Foreign, "the candidate's report"))
			result := b.Queue(t)
			require.Equal(t, a.Candidate.Key(), etcdtest.Take(t, b.Waiting, "its predecessor").Predecessor.Key)
			etcdtest.Eventually(t, func() bool { return o.State().Leader.Token == leader.Token() }, "the observer sees the leader")
			require.Len(t, queueOf(t, c, name), 2)
			// Another foreign key is put meanwhile.
			require.NoError(t, etcdtest.Err(cli.Put(etcdtest.Context(t), keys.Prefix(name)+"second", "")))
			require.NoError(t, leader.Resign(etcdtest.Context(t)))
			next := electiontest.Wins(t, result)
			require.NoError(t, next.Resign(etcdtest.Context(t)))
			alone, err := a.Candidate.Try(etcdtest.Context(t))
			require.NoError(t, err)
			require.NoError(t, alone.Resign(etcdtest.Context(t)))
			require.ErrorIs(t, etcdtest.Err(observe.LeaderOf(etcdtest.Context(t), cli, name)), eldest.ErrNoLeader)
			resp, err := cli.Get(etcdtest.Context(t), key)
			require.NoError(t, err)
			require.Len(t, resp.Kvs, 1, "somebody else's key was removed")
		})
	}
}

// Row 38. A value larger than the request limit, and values with NUL and 0xFF. In other
// implementations the campaign is retried for ever, and the value is cut at the NUL. In Eldest
// there is a clear error before any request is sent, and the bytes are exact.
//
// Fails when the size of a value is not checked, or a value is converted to text.
func TestRegression38_Values(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	var rec etcdtest.Recorder
	cli := c.Client(t, rec.Attach)
	value := []byte("\x00\xff\xfe nul and more \x00\r\n")
	want := slices.Clone(value)
	p := join(t, cli, name, func(_ *lease.Config, e *election.Config) { e.Value, e.Timeout = value, etcdtest.Patience })
	value[0] = 'x' // the candidate has a copy
	o, err := observe.New(observe.Config{Election: name, KV: c.Client(t), Watcher: c.Client(t)})
	require.NoError(t, err)
	t.Cleanup(o.Close)
	leader := p.Lead(t)
	same := func(want []byte) {
		t.Helper()
		now, err := observe.LeaderOf(etcdtest.Context(t), cli, name)
		require.NoError(t, err)
		require.Equal(t, want, now.Value, "the bytes of the leader's value")
		etcdtest.Eventually(t, func() bool { return slices.Equal(o.State().Leader.Value, want) }, "the observer has the bytes")
	}
	same(want)
	largest := make([]byte, election.MaxValue)
	for i := range largest {
		largest[i] = byte(i)
	}
	require.NoError(t, leader.Proclaim(etcdtest.Context(t), largest))
	same(largest)
	rec.Reset()
	for what, err := range map[string]error{
		"proclaim as leader":    leader.Proclaim(etcdtest.Context(t), append(largest, 0)),
		"proclaim as candidate": p.Candidate.Proclaim(etcdtest.Context(t), append(largest, 0)),
	} {
		require.ErrorIs(t, err, eldest.ErrInvalid, what)
	}
	require.Zero(t, rec.Count("Txn", "Put"), "it was sent")
	same(largest)
	for _, short := range [][]byte{{0}, {0xff, 0, 0xff, 0xfe}, []byte("\xc3\x28 \x80")} {
		require.NoError(t, leader.Proclaim(etcdtest.Context(t), short))
		same(short)
	}
	for _, none := range [][]byte{{}, nil} {
		require.NoError(t, leader.Proclaim(etcdtest.Context(t), none))
		now, err := observe.LeaderOf(etcdtest.Context(t), cli, name)
		require.NoError(t, err)
		require.Empty(t, now.Value)
	}
	require.NoError(t, leader.Err())
}
