package elector_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/memetcd"
	"github.com/eldest-io/eldest/lease"
)

// shards is a group that runs in some elections, with the tenures of its lead functions.
type shards struct {
	*elector.Group
	t     *testing.T
	won   chan *elector.Leadership
	stops map[string]context.CancelFunc
	done  map[string]chan error
}

func group(t *testing.T, cli *clientv3.Client, change ...func(*elector.Config)) *shards {
	t.Helper()
	cfg := config("", "n-"+strconv.Itoa(int(nodes.Add(1))), cli)
	cfg.Backoff = func(int) time.Duration { return time.Millisecond }
	for _, f := range change {
		f(&cfg)
	}
	g, err := elector.NewGroup(cfg)
	require.NoError(t, err)
	s := &shards{Group: g, t: t, won: make(chan *elector.Leadership, 4096), stops: map[string]context.CancelFunc{}, done: map[string]chan error{}}
	t.Cleanup(s.end)
	return s
}

var nodes atomic.Int32

// names returns the names of n elections.
func names(t *testing.T, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s-%d", etcdtest.Election(t), i))
	}
	return all
}

func untilOver(ctx context.Context, _ *elector.Leadership) error {
	<-ctx.Done()
	return nil
}

func (s *shards) run(lead func(context.Context, *elector.Leadership) error, names ...string) {
	for _, name := range names {
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		s.stops[name], s.done[name] = stop, done
		go func() {
			defer close(done)
			done <- s.Run(ctx, name, func(ctx context.Context, l *elector.Leadership) error {
				s.won <- l
				return lead(ctx, l)
			})
		}()
	}
}

// stop ends the Runs of some elections, at the same time, and waits for them.
func (s *shards) stop(names ...string) {
	for _, name := range names {
		s.stops[name]()
	}
	for _, name := range names {
		require.ErrorIs(s.t, etcdtest.Take(s.t, s.done[name], "the end of Run"), context.Canceled)
		delete(s.stops, name)
	}
}

func (s *shards) end() {
	for name, stop := range s.stops {
		stop()
		_ = etcdtest.Take(s.t, s.done[name], "the end of Run")
	}
}

// leads waits until the group leads n elections that it did not lead before.
func (s *shards) leads(n int) map[string]*elector.Leadership {
	s.t.Helper()
	all := make(map[string]*elector.Leadership)
	for range n {
		l := etcdtest.Take(s.t, s.won, "a win")
		all[l.Election()] = l
	}
	require.Len(s.t, all, n, "each of its own")
	return all
}

// lease returns the one lease that all keys are bound to.
func (s *shards) lease(all map[string]*elector.Leadership) clientv3.LeaseID {
	s.t.Helper()
	cli, leases := etcdtest.Shared(s.t).Client(s.t), map[int64]bool{}
	var id int64
	for name := range all {
		for _, entry := range queueOf(s.t, cli, name) {
			id = entry.Lease
			leases[id] = true
		}
	}
	require.Len(s.t, leases, 1)
	return clientv3.LeaseID(id)
}

// Many elections are led on one lease. Stopping one does not disturb the others, and the end of
// all of them leaves nothing in etcd.
func TestGroup(t *testing.T) {
	t.Parallel()
	const n = 200
	all, cli := names(t, n), etcdtest.Shared(t).Client(t)
	g := group(t, cli)
	g.run(untilOver, all...)
	led := g.leads(n)
	id := g.lease(led)
	require.ErrorIs(t, g.Run(t.Context(), all[0], untilOver), eldest.ErrCampaigning)

	g.stop(all[0], all[1])
	for _, name := range all[:2] {
		require.ErrorIs(t, led[name].Err(), eldest.ErrResigned)
		require.Empty(t, queueOf(t, cli, name))
	}
	for _, name := range all[2:] {
		require.NoError(t, led[name].Err())
	}
	g.run(untilOver, all[0])
	again := g.leads(1)
	require.Equal(t, id, g.lease(again))
	require.Greater(t, again[all[0]].Token(), led[all[0]].Token())

	g.stop(all[0])
	g.stop(all[2:]...)
	for _, name := range all {
		require.Empty(t, queueOf(t, cli, name))
	}
	left, err := cli.TimeToLive(etcdtest.Context(t), id)
	require.NoError(t, err)
	require.EqualValues(t, -1, left.TTL, "the lease was revoked")
	g.run(untilOver, all[:2]...)
	require.NotEqual(t, id, g.lease(g.leads(2)), "a new session")
}

// The loss of the session ends all rounds, and one new session serves all elections, including
// those in which the group waited.
func TestGroupLosesItsSession(t *testing.T) {
	t.Parallel()
	const n = 50
	all, cli := names(t, 2*n), etcdtest.Shared(t).Client(t)
	var asked atomic.Int32
	g := group(t, cli, func(cfg *elector.Config) {
		cfg.Source = func(context.Context) (elector.Clients, error) {
			if asked.Add(1)%2 == 1 {
				return elector.Clients{}, errors.New("not ready yet")
			}
			return elector.Client(cli), nil
		}
		cfg.Session.TTL = 10 * time.Second // a renewal or the deleted keys show the loss
	})
	other := group(t, cli)
	other.run(untilOver, all[n:]...)
	other.leads(n)
	g.run(untilOver, all...)
	led := g.leads(n)
	id := g.lease(led)
	require.Eventually(t, func() bool { return len(queueOf(t, cli, all[2*n-1])) == 2 }, etcdtest.Patience, time.Millisecond)

	require.NoError(t, etcdtest.Err(cli.Revoke(etcdtest.Context(t), id)))
	require.Eventually(t, func() bool { return asked.Load() == 4 }, etcdtest.Patience, time.Millisecond, "one session more")
	for deadline := time.Now().Add(etcdtest.Patience); ; {
		again := g.leads(1)
		for name, l := range again {
			require.Greater(t, l.Token(), led[name].Token())
			require.Error(t, led[name].Err())
			led[name] = l
		}
		now := 0
		for _, l := range led {
			if l.Err() == nil {
				now++
			}
		}
		if now == n {
			break
		}
		require.True(t, time.Now().Before(deadline))
	}
	require.NotEqual(t, id, g.lease(led))
	other.stop(all[n:]...)
	for name, l := range g.leads(n) {
		require.NoError(t, l.Err(), name)
	}
	require.EqualValues(t, 4, asked.Load())
}

// A lead function that returns gives leadership up, and the node campaigns again at the end of
// the queue.
func TestGroupAtTheEndOfTheQueue(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	enough := errors.New("enough")
	once := func(next chan struct{}) func(context.Context, *elector.Leadership) error {
		return func(ctx context.Context, _ *elector.Leadership) error {
			select {
			case <-next:
				return enough
			case <-ctx.Done():
				return nil
			}
		}
	}
	var last eldest.Token
	next := make(chan struct{})
	var line []*shards
	for i := range 3 {
		g := group(t, cli)
		g.run(once(next), name)
		require.Eventually(t, func() bool { return len(queueOf(t, cli, name)) == i+1 }, etcdtest.Patience, time.Millisecond)
		line = append(line, g)
	}
	for i := range 3 * len(line) {
		l := etcdtest.Take(t, line[i%len(line)].won, "the win of the next one")
		require.Greater(t, l.Token(), last)
		last = l.Token()
		require.Eventually(t, func() bool { return len(queueOf(t, cli, name)) == len(line) }, etcdtest.Patience, time.Millisecond)
		give(t, next, struct{}{})
	}
}

// At most Config.Starts elections register or resign at a time.
func TestGroupStarts(t *testing.T) {
	t.Parallel()
	const n, most = 100, 4
	var under, seen atomic.Int32
	cli := etcdtest.Shared(t).Client(t, func(cfg *clientv3.Config) {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if method == "/etcdserverpb.KV/Txn" {
					now := under.Add(1)
					defer under.Add(-1)
					for most := seen.Load(); now > most && !seen.CompareAndSwap(most, now); most = seen.Load() {
					}
				}
				return invoke(ctx, method, req, reply, cc, opts...)
			}))
	})
	all := names(t, n)
	g := group(t, cli, func(cfg *elector.Config) { cfg.Starts = most })
	g.run(untilOver, all...)
	g.leads(n)
	waits := group(t, cli, func(cfg *elector.Config) { cfg.Starts = most })
	waits.run(untilOver, all...)
	require.Eventually(t, func() bool {
		for _, name := range all {
			if len(queueOf(t, cli, name)) < 2 {
				return false
			}
		}
		return true
	}, etcdtest.Patience, 10*time.Millisecond)
	waits.stop(all...)
	g.stop(all...)
	require.LessOrEqual(t, seen.Load(), int32(2*most), "of two groups")
}

// A lead function that ignores its context keeps its key for Config.Drain; then another node
// leads, and the group's other elections go on. Run waits for it.
func TestGroupDrains(t *testing.T) {
	t.Parallel()
	all, cli := names(t, 2), etcdtest.Shared(t).Client(t)
	g := group(t, cli, func(cfg *elector.Config) { cfg.Drain = 100 * time.Millisecond })
	release := make(chan struct{})
	g.run(untilOver, all[0])
	g.run(func(context.Context, *elector.Leadership) error { <-release; return nil }, all[1])
	led := g.leads(2)
	next := group(t, cli)
	next.run(untilOver, all[1])
	require.Eventually(t, func() bool { return len(queueOf(t, cli, all[1])) == 2 }, etcdtest.Patience, time.Millisecond)
	g.stops[all[1]]()
	next.leads(1)
	require.NoError(t, led[all[0]].Err())
	require.Error(t, led[all[1]].Err())
	require.Empty(t, g.done[all[1]], "it waits")
	close(release)
	g.stop(all[1])
}

// A lead function that ends its goroutine loses its own key, and no other.
func TestGroupLosesAGoroutine(t *testing.T) {
	t.Parallel()
	all, cli := names(t, 2), etcdtest.Shared(t).Client(t)
	g := group(t, cli)
	g.run(untilOver, all[0])
	led := g.leads(1)
	var ended sync.WaitGroup
	ended.Go(func() {
		_ = g.Run(t.Context(), all[1], func(context.Context, *elector.Leadership) error { runtime.Goexit(); return nil })
	})
	ended.Wait()
	require.Empty(t, queueOf(t, cli, all[1]))
	require.NoError(t, led[all[0]].Err())
	require.Panics(t, func() {
		_ = g.Run(t.Context(), all[1], func(context.Context, *elector.Leadership) error { panic("a bug") })
	})
	require.Empty(t, queueOf(t, cli, all[1]))
}

// nowhere returns a client of an etcd that does not exist.
func nowhere(t *testing.T) *clientv3.Client {
	t.Helper()
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{etcdtest.Nowhere(t)}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = cli.Close() })
	return cli
}

// While etcd cannot be reached Run waits, and ends with its context.
func TestGroupWithoutEtcd(t *testing.T) {
	t.Parallel()
	g := group(t, nowhere(t))
	g.run(untilOver, names(t, 20)...)
	time.Sleep(50 * time.Millisecond)
	require.Empty(t, g.won)
}

// A codec that panics leaves no session behind.
func TestGroupCodecThatPanics(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, _ *memetcd.Etcd) {
		var session *lease.Session
		codec := panicking{now: new(bool)}
		g, err := elector.NewGroup(config("", "n", cli, virtual, func(cfg *elector.Config) {
			cfg.Codec = codec
			cfg.Session.Hooks.Opened = func(o lease.OpenedEvent) { session = o.Session }
		}))
		require.NoError(t, err)
		*codec.now = true
		require.Panics(t, func() { _ = g.Run(t.Context(), "e", untilOver) })
		synctest.Wait()
		defer session.Abandon()
		require.Error(t, session.Err(), "the session is renewed for ever")
	})
}

// While etcd is away, a Run that has not registered yet ends with its context, also if others that
// register have all the places.
func TestGroupEndsBeforeRegistration(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, link *memetcd.Link, _ *memetcd.Etcd) {
		g := group(t, cli, virtual, func(cfg *elector.Config) { cfg.Starts = 1 })
		g.run(untilOver, "leads")
		g.leads(1)
		link.Interrupt()
		defer link.Restore()
		g.run(untilOver, "registers")
		synctest.Wait()
		g.run(untilOver, "waits")
		synctest.Wait()
		began := time.Now()
		g.stop("waits")
		require.Less(t, time.Since(began), time.Second)
	})
}

// A Run that ends does not wait for another one that begins meanwhile and waits for etcd. With the
// fault that this is about one attempt of some 200,000 failed.
func TestGroupEndsWhileAnotherRunBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := group(t, nil, func(cfg *elector.Config) {
			cfg.Source = func(ctx context.Context) (elector.Clients, error) {
				<-ctx.Done()
				return elector.Clients{}, context.Cause(ctx)
			}
		})
		for i := range 5000 {
			g.run(untilOver, "ends")
			synctest.Wait()
			go g.stops["ends"]()
			for range i % 50 {
				runtime.Gosched()
			}
			g.run(untilOver, "begins")
			synctest.Wait()
			select {
			case err := <-g.done["ends"]:
				require.ErrorIs(t, err, context.Canceled)
			default:
				t.Fatalf("it waits for the other one, in attempt %d", i)
			}
			g.stop("begins")
		}
	})
}
