package resolver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	grpcresolver "google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/resolver"
)

func target(t testing.TB, election string) grpcresolver.Target {
	t.Helper()
	u, err := url.Parse(resolver.Target(election))
	require.NoError(t, err)
	return grpcresolver.Target{URL: *u}
}

// quick notices an unavailable etcd within about a second, and takes a slow etcd for an unavailable
// one.
func quick(cfg *resolver.EtcdConfig) {
	cfg.Observer = observe.Options{Timeout: 150 * time.Millisecond, WatchCheck: 150 * time.Millisecond}
}

func fromEtcd(t testing.TB, cli *clientv3.Client, change ...func(*resolver.EtcdConfig)) grpcresolver.Builder {
	t.Helper()
	cfg := resolver.EtcdConfig{KV: cli, Watcher: cli, Observer: observe.Options{Timeout: etcdtest.Patience / 3}}
	for _, f := range change {
		f(&cfg)
	}
	b, err := resolver.FromEtcd(cfg)
	require.NoError(t, err)
	return b
}

// Row 49: the leader changes, and the client follows; once it has reached the new leader it never
// reaches the old one again.
func TestRequirement49FromEtcd(t *testing.T) {
	q := newQueue(t, etcdtest.Shared(t))
	nodes := []*node{newNode(t, "a"), newNode(t, "b"), newNode(t, "c")}
	conn := dial(t, q.election, fromEtcd(t, q.admin))
	for i := range int64(12) {
		n := nodes[i%3]
		q.leader(i%3+1, n)
		reaches(t, conn, n)
		for range 20 {
			requireAnswer(t, conn, n)
		}
	}
}

// Before the first leader, calls that do not wait fail with the reason; calls that wait are
// answered when there is a leader, without another attempt.
func TestEtcdBeforeTheFirstLeader(t *testing.T) {
	q := newQueue(t, etcdtest.Shared(t))
	a := newNode(t, "a")
	conn := dial(t, q.election, fromEtcd(t, q.admin))
	_, err := call(etcdtest.Context(t), conn)
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, eldest.ErrNoLeader.Error())
	require.ErrorContains(t, err, q.election)

	waited := make(chan error, 1)
	go func() {
		_, err := call(etcdtest.Context(t), conn, grpc.WaitForReady(true))
		waited <- err
	}()
	q.leader(1, a)
	require.NoError(t, etcdtest.Take(t, waited, "the answer"))

	_, err = call(etcdtest.Context(t), dial(t, "a/b", fromEtcd(t, q.admin))) // a bad target
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, "contains '/'")
}

// The last address stays while no candidate leads, while the leader publishes no address, and while
// its value has another format. Errors are reported only to clients that have no address.
func TestEtcdKeepsTheLastAddress(t *testing.T) {
	q := newQueue(t, etcdtest.Shared(t))
	a, b := newNode(t, "a"), newNode(t, "b")
	builder := fromEtcd(t, q.admin)
	c := newClient(t)
	c.build(builder, q.election)
	c.reports(eldest.ErrNoLeader)
	q.leads(1, []byte("strange"))
	c.reports(eldest.ErrForeignValue)
	q.leads(2, []byte{0x0a, 1, 'x'})
	c.until(func(_ []string, errs []error) bool {
		return len(errs) > 0 && errs[len(errs)-1].Error() == fmt.Sprintf("eldest: resolve election %q: no leader with an address", q.election)
	})
	q.leader(3, a)
	c.isLedTo(a)

	q.nobody()
	q.leads(4, []byte{0x0a, 1, 'x'})
	q.leads(5, []byte("strange"))
	q.leader(6, a)
	c.isLedTo(a, a)
	for range 3 { // the same tenure: nothing is published
		_, err := q.admin.Put(etcdtest.Context(t), keys.Candidate(q.election, 6), string(a.value(t)))
		require.NoError(t, err)
	}
	late := newClient(t)
	late.build(builder, q.election)
	late.isLedTo(a)
	q.leader(7, b)
	late.isLedTo(a, b)
	c.isLedTo(a, a, b)
}

// A leader that crashes, comes back at its address and leads again is reached at once, however far
// gRPC's back-off has grown.
func TestEtcdLeaderComesBack(t *testing.T) {
	q := newQueue(t, etcdtest.Shared(t))
	a := newNode(t, "a")
	// The node that is dialled for a's address; nil while it is down. So no other process can take
	// a port that the test needs again.
	var lives atomic.Pointer[node]
	lives.Store(a)
	var refused atomic.Int64
	conn := dial(t, q.election, fromEtcd(t, q.admin), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		if now := lives.Load(); now != nil {
			return new(net.Dialer).DialContext(ctx, "tcp", now.address)
		}
		refused.Add(1)
		return nil, errors.New("refused")
	}), grpc.WithConnectParams(grpc.ConnectParams{ // after the first attempt that fails
		Backoff: backoff.Config{BaseDelay: time.Hour, Multiplier: 1, MaxDelay: time.Hour}, MinConnectTimeout: etcdtest.Patience,
	}))
	q.leader(1, a)
	reaches(t, conn, a)
	lives.Store(nil)
	a.server.Stop()
	answered := make(chan error, 1)
	go func() {
		ctx := etcdtest.Context(t)
		_, err := call(ctx, conn, grpc.WaitForReady(true))
		for err != nil && ctx.Err() == nil { // on the old connection, until its loss is detected
			_, err = call(ctx, conn, grpc.WaitForReady(true))
		}
		answered <- err
	}()
	require.Eventually(t, func() bool { return refused.Load() > 0 }, etcdtest.Patience, time.Millisecond)
	lives.Store(newNode(t, "a"))
	q.leader(2, a) // of the same address
	require.NoError(t, etcdtest.Take(t, answered, "the answer, at once: gRPC by itself looks again after an hour"))
}

// etcd becomes unavailable and comes back: calls still reach the last known leader, and the client
// then receives what has changed.
func TestEtcdAwayAndBack(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{})
	q := newQueue(t, cluster)
	a, b, c := newNode(t, "a"), newNode(t, "b"), newNode(t, "c")
	host := cluster.Host(t)
	builder := fromEtcd(t, host.Client(t), quick)
	conn, spy := dial(t, q.election, builder), newClient(t)
	spy.build(builder, q.election)
	q.leader(1, a)
	reaches(t, conn, a)
	spy.isLedTo(a)

	dropped := host.Stats().Dropped.Inbound
	host.Cut()
	q.leader(2, b)
	require.Eventually(t, func() bool { return host.Stats().Dropped.Inbound > dropped+10 }, etcdtest.Patience, time.Millisecond, "the black hole was met")
	requireAnswer(t, conn, a)
	host.Mend()
	reaches(t, conn, b)
	spy.isLedTo(a, b)

	require.NoError(t, cluster.Member(0).Kill())
	requireAnswer(t, conn, b)
	require.NoError(t, cluster.Restart(etcdtest.Context(t), 0))
	q.leader(3, c)
	reaches(t, conn, c)
	spy.isLedTo(a, b, c)

	// A client that starts while etcd is unavailable gets that error, and the leader as soon as
	// etcd is back.
	host.Cut()
	late := newClient(t)
	late.build(builder, q.election)
	late.reports(eldest.ErrUnavailable)
	host.Mend()
	late.isLedTo(c)
}

// refusing denies a number of requests as if permanently, and then serves them.
type refusing struct {
	clientv3.KV
	times atomic.Int64
}

func (r *refusing) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if r.times.Add(-1) >= 0 {
		return clientv3.OpResponse{}, rpctypes.ErrPermissionDenied
	}
	return r.KV.Do(ctx, op)
}

// A permission that is granted later is found: a resolver cannot give up. The pauses grow.
func TestEtcdRefusal(t *testing.T) {
	q := newQueue(t, etcdtest.Shared(t))
	a := newNode(t, "a")
	q.leader(1, a)
	kv := &refusing{KV: q.admin}
	kv.times.Store(5)
	var attempts []int
	c := newClient(t)
	c.build(fromEtcd(t, q.admin, func(cfg *resolver.EtcdConfig) {
		cfg.KV = kv
		cfg.Observer.Backoff = func(attempt int) time.Duration {
			attempts = append(attempts, attempt)
			return time.Millisecond
		}
	}), q.election)
	c.isLedTo(a)
	require.Equal(t, []int{0, 1, 2, 3, 4}, attempts)
	require.ErrorContains(t, c.errs[0], "permission denied")
}

// After the etcd client was closed nothing more is published, and the address stays.
func TestEtcdClosedClient(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Shared(t)
	q := newQueue(t, cluster)
	a := newNode(t, "a")
	cli := cluster.Client(t)
	builder := fromEtcd(t, cli)
	conn := dial(t, q.election, builder)
	q.leader(1, a)
	reaches(t, conn, a)
	require.NoError(t, cli.Close())
	c := newClient(t)
	c.build(builder, q.election)
	c.reports(eldest.ErrClosed)
	// The observer's last state, and its end.
	require.Never(t, func() bool { return c.told() > 2 }, 200*time.Millisecond, 10*time.Millisecond, "nothing comes of asking again")
	requireAnswer(t, conn, a)
}

// Close leaves nothing running, which the leak check of the package verifies, whenever it is
// called: while a source has a leader, has none, or does not respond, and right after Build.
func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	q := newQueue(t, etcdtest.Shared(t))
	silent, reached := etcdtest.Shared(t).Host(t), etcdtest.Shared(t).Host(t)
	knows, wonders := newNode(t, "knows"), newNode(t, "wonders")
	knows.knows(q.election, knows, 1)
	wonders.wonders(q.election)
	nodes := func(addresses ...string) grpcresolver.Builder {
		return fromNodes(t, resolver.NodesConfig{Addresses: addresses, Timeout: never})
	}
	builders := []grpcresolver.Builder{
		fromEtcd(t, reached.Client(t), quick), fromEtcd(t, silent.Client(t), quick),
		nodes(knows.address), nodes(wonders.address), nodes(quiet(t)), nodes(etcdtest.Nowhere(t)),
	}
	silent.Cut()
	for i, builder := range builders {
		for n := range 4 {
			c := newClient(t)
			r, err := builder.Build(target(t, q.election), c, plain)
			require.NoError(t, err)
			r.ResolveNow(grpcresolver.ResolveNowOptions{})
			if n%2 == 0 && i != 4 {
				c.until(func(addresses []string, errs []error) bool { return len(addresses)+len(errs) > 0 })
			}
			closed := make(chan struct{})
			go func() { r.Close(); close(closed) }()
			etcdtest.Take(t, closed, "the end of Close")
		}
	}
	etcdtest.Eventually(t, func() bool { return knows.asking.Load()+wonders.asking.Load() == 0 }, "no node is asked any more")
}

// Close waits until a running update has returned; after Close there are no updates.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	q := newQueue(t, etcdtest.Shared(t))
	n := newNode(t, "n")
	n.wonders(q.election)
	for name, builder := range map[string]grpcresolver.Builder{"etcd": fromEtcd(t, q.admin), "nodes": fromNodes(t, resolver.NodesConfig{}, n)} {
		t.Run(name, func(t *testing.T) {
			slow := &slowClient{client: newClient(t), told: make(chan struct{}, 16), release: make(chan struct{})}
			r, err := builder.Build(target(t, q.election), slow, plain)
			require.NoError(t, err)
			etcdtest.Take(t, slow.told, "something to be told")
			closed := make(chan struct{})
			go func() { r.Close(); close(closed) }()
			select {
			case <-closed:
				require.Fail(t, "Close does not wait")
			case <-time.After(100 * time.Millisecond):
			}
			close(slow.release)
			etcdtest.Take(t, closed, "the end of Close")
		})
	}
}

// slowClient blocks when an error is reported.
type slowClient struct {
	*client
	told, release chan struct{}
}

func (c *slowClient) ReportError(error) {
	c.told <- struct{}{}
	<-c.release
}
