package resolver_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/resolver"
)

// served is a node of a real service.
type served struct {
	*curator.Curator
	t       testing.TB
	id      string
	address string // where it listens
	stop    func() // and wait for its end
}

// serve starts a node of a service in a real election. It publishes the address at which it
// listens, unless another one is given.
func serve(t testing.TB, q *queue, id, publishes string) *served {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c, err := curator.New(curator.Config{
		Elector: elector.Config{
			Election: q.election, NodeID: id, Address: publishes, Source: elector.Always(elector.Client(q.admin)),
			Session: lease.Options{TTL: time.Minute}, // on a busy machine no node loses its lease
			Backoff: func(int) time.Duration { return 10 * time.Millisecond },
		},
		Listeners: []curator.Listener{{Listener: listener}}, Wait: 100 * time.Millisecond,
		Services: func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error { return nil },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(ctx)
	}()
	s := &served{Curator: c, t: t, id: id, address: listener.Addr().String(), stop: func() {
		cancel()
		etcdtest.Take(t, done, "the end of "+id)
	}}
	t.Cleanup(s.stop)
	s.until(func(status elector.Status) bool { return status.Role() != elector.Unknown })
	return s
}

// until waits for a status of the node.
func (s *served) until(want func(elector.Status) bool) elector.Status {
	s.t.Helper()
	status, err := s.Watch().NextWhere(etcdtest.Context(s.t), want)
	require.NoError(s.t, err, s.id)
	return status
}

// leads waits until the node leads, and returns its key.
func (s *served) leads() (key string) {
	s.t.Helper()
	key, _, _ = s.until(func(status elector.Status) bool { return status.Role() == elector.Leading }).Own()
	return key
}

// depose deletes the key of the node, which leads.
func (s *served) depose(q *queue) {
	s.t.Helper()
	_, err := q.admin.Delete(etcdtest.Context(s.t), s.leads())
	require.NoError(s.t, err)
}

// connects waits until the calls of a client go to the node, and to no other that forwards them.
func (s *served) connects(conn *grpc.ClientConn) {
	s.t.Helper()
	etcdtest.Eventually(s.t, func() bool {
		ctx, cancel := context.WithCancel(etcdtest.Context(s.t))
		defer cancel()
		stream, err := curatorpb.NewCuratorClient(conn).CurrentLeader(ctx, &curatorpb.CurrentLeaderRequest{}, grpc.WaitForReady(true))
		if err == nil {
			_, err = stream.Recv() // a node answers this call itself
		}
		if err != nil {
			return false
		}
		from, ok := peer.FromContext(stream.Context())
		return ok && from.Addr.String() == s.address
	}, "the client is connected to %s", s.id)
}

// A client has the address of one node. It follows the leader to nodes that it has learned, also
// when the node that it began with has ended, and all that it has learned but the last.
func TestNodesAreLearned(t *testing.T) {
	t.Parallel()
	q := newQueue(t, etcdtest.Shared(t))
	first := serve(t, q, "a", "")
	first.leads()
	builder, err := resolver.FromNodes(resolver.NodesConfig{Addresses: []string{first.address}})
	require.NoError(t, err)
	conn := dial(t, q.election, builder)
	first.connects(conn)
	leader := first
	for _, id := range []string{"b", "c", "d"} {
		next := serve(t, q, id, "")
		leader.depose(q)
		next.leads()
		next.connects(conn)
		leader.stop()
		leader = next
	}
}

// A node that publishes an address which clients cannot reach, or none, is dialled at the endpoint
// of the config, by both kinds of resolver. This is also the address of the learned node.
//
// Fails if the published address is used, or if an empty one is.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	q := newQueue(t, etcdtest.Shared(t))
	first := serve(t, q, "a", "")
	conns := make(map[string]*grpc.ClientConn)
	open := func(name string, builder grpcresolver.Builder, err error) {
		t.Helper()
		require.NoError(t, err)
		conns[name] = dial(t, q.election, builder)
		first.connects(conns[name])
	}
	listeners := map[string]*node{"far": newNode(t, "far"), "nowhere": newNode(t, "nowhere")}
	endpoints := map[string]string{"far": listeners["far"].address, "nowhere": listeners["nowhere"].address}
	nodes, err := resolver.FromNodes(resolver.NodesConfig{Addresses: []string{first.address}, Endpoints: endpoints, Timeout: 500 * time.Millisecond})
	open("nodes", nodes, err)
	etcd, err := resolver.FromEtcd(resolver.EtcdConfig{KV: q.admin, Watcher: q.admin, Endpoints: endpoints})
	open("etcd", etcd, err)
	clear(endpoints) // it was copied
	for id, address := range map[string]string{"far": etcdtest.Nowhere(t), "nowhere": ""} {
		value, err := identity.Protobuf{}.Encode(identity.Identity{NodeID: id, Address: address, TTL: time.Minute})
		require.NoError(t, err)
		q.leads(int64(len(id)), value)
		for _, conn := range conns {
			reaches(t, conn, listeners[id])
		}
	}

	last := newNode(t, "last")
	far := listeners["nowhere"]
	far.knows(q.election, last, 1<<40)
	first.stop()
	reaches(t, conns["nodes"], last) // as the learned one reports
}

// Of the nodes that led the last ones are queried, the latest first, and after those of the config.
//
// Fails if all are kept, or if the latest are dropped.
func TestLearnedNodesAreFew(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	const timeout = time.Second // a node that reports for that long was of use, and a round begins
	var mu sync.Mutex
	var dialled []string
	dials := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(dialled)
	}
	first := newNode(t, "first")
	c := newClient(t)
	c.build(fromNodes(t, resolver.NodesConfig{
		Timeout: timeout, Backoff: new(pauses).next,
		DialOptions: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				mu.Lock()
				dialled = append(dialled, address)
				mu.Unlock()
				return new(net.Dialer).DialContext(ctx, "tcp", address)
			}),
		},
	}, first), election)
	var leaders []*node
	for i := range 10 {
		leader := &node{id: "dead", address: etcdtest.Nowhere(t)}
		leaders = append(leaders, leader)
		first.knows(election, leader, int64(2*i+1))
		c.isLedTo(leaders...)
	}
	time.Sleep(timeout)
	begin := len(dials())
	first.server.Stop()
	want := []string{first.address}
	for _, leader := range leaders[2:] {
		want = slices.Insert(want, 1, leader.address)
	}
	want = append(want, want...) // two rounds
	etcdtest.Eventually(t, func() bool { return len(dials()) >= begin+len(want) }, "two rounds")
	require.Equal(t, want, dials()[begin:begin+len(want)])
}

// If each node has a certificate's name of its own, a learned node must have the name that its
// identity had.
//
// Fails if the name is that of the address.
func TestCertificateOfALearnedNode(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	election := etcdtest.Election(t)
	first, second, third := newNode(t, "first", a.server("first.test", "127.0.0.1")), newNode(t, "second", a.server("second.test")), newNode(t, "third", a.server("third.test"))
	first.knows(election, second, 1)
	conn := dial(t, election, fromNodes(t, resolver.NodesConfig{
		ServerName: func(leader identity.Identity) string { return leader.NodeID + ".test" },
	}, first), a.client())
	reaches(t, conn, second)
	first.server.Stop()
	second.knows(election, third, 2)
	reaches(t, conn, third)
}

// A learned node is dialled as the leader is: with the address that it published, which need not be
// one of DNS if the client has a dialer of its own.
//
// Fails if gRPC resolves the addresses of learned nodes.
func TestLearnedNodeOfADialer(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	first, second, third := newNode(t, "first"), newNode(t, "second"), newNode(t, "third")
	first.knows(election, &node{id: "second", address: "second:1"}, 1)
	second.knows(election, &node{id: "third", address: "third:1"}, 2)
	addresses := map[string]string{"first:1": first.address, "second:1": second.address, "third:1": third.address}
	conn := dial(t, election, fromNodes(t, resolver.NodesConfig{Addresses: []string{"passthrough:///first:1"}}),
		grpc.WithContextDialer(func(ctx context.Context, name string) (net.Conn, error) {
			address, ok := addresses[name]
			if !ok {
				return nil, fmt.Errorf("%q is no name of a node", name)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}))
	reaches(t, conn, second)
	first.server.Stop()
	reaches(t, conn, third)
}

// A connection that was idle knows the nodes that it had learned: gRPC has closed its resolver, and
// builds another one for the next call.
//
// Fails if each resolver begins with the config alone.
func TestIdleConnection(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	first, second := newNode(t, "first"), newNode(t, "second")
	first.knows(election, second, 1)
	second.knows(election, second, 1)
	conn := dial(t, election, fromNodes(t, resolver.NodesConfig{}, first), grpc.WithIdleTimeout(50*time.Millisecond))
	reaches(t, conn, second)
	first.server.Stop()
	etcdtest.Eventually(t, func() bool { return conn.GetState() == connectivity.Idle }, "the connection is idle")
	etcdtest.Eventually(t, func() bool { return second.asking.Load() == 0 }, "no node is queried")
	reaches(t, conn, second)
}
