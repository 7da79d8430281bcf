package resolver_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcresolver "google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/latest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/resolver"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// node is a server that returns its name, and the leader that the test sets.
type node struct {
	curatorpb.UnimplementedCuratorServer
	id, address string
	server      *grpc.Server
	tells       latest.Cell[*curatorpb.CurrentLeaderResponse]
	asked       atomic.Int64 // streams opened so far
	asking      atomic.Int64 // streams open now
}

// newNode starts a node on loopback, which ends with the test.
func newNode(t testing.TB, id string, options ...grpc.ServerOption) *node {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := &node{id: id, address: listener.Addr().String()}
	n.server = grpc.NewServer(append(options, grpc.UnknownServiceHandler(n.who))...)
	curatorpb.RegisterCuratorServer(n.server, n)
	served := make(chan error, 1)
	go func() { served <- n.server.Serve(listener) }()
	t.Cleanup(func() {
		n.server.Stop()
		require.NoError(t, <-served)
	})
	return n
}

// who replies to any method with the node's name.
func (n *node) who(_ any, stream grpc.ServerStream) error {
	if err := stream.RecvMsg(new(emptypb.Empty)); err != nil {
		return err
	}
	return stream.SendMsg(wrapperspb.String(n.id))
}

// CurrentLeader sends what the test has set.
func (n *node) CurrentLeader(_ *curatorpb.CurrentLeaderRequest, stream grpc.ServerStreamingServer[curatorpb.CurrentLeaderResponse]) error {
	n.asked.Add(1)
	n.asking.Add(1)
	defer n.asking.Add(-1)
	for tells := n.tells.Reader(); ; {
		answer, err := tells.Next(stream.Context())
		if err != nil {
			return err
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

// hangUp ends the node's streams, with an error.
func (n *node) hangUp() { n.tells.Close(status.Error(codes.Unavailable, "enough")) }

// knows makes the node report leader as the leader.
func (n *node) knows(election string, leader *node, token int64) {
	n.tells.Set(&curatorpb.CurrentLeaderResponse{
		Role: curatorpb.CurrentLeaderResponse_ROLE_FOLLOWING, Election: election, ThisNodeId: n.id, ThisInstanceId: "1",
		LeaderNodeId: leader.id, LeaderInstanceId: "1", LeaderAddress: leader.address, Token: token,
	})
}

// wonders makes the node report that the leader is unknown.
func (n *node) wonders(election string) {
	n.tells.Set(&curatorpb.CurrentLeaderResponse{Election: election, ThisNodeId: n.id, ThisInstanceId: "1", Reason: "too early to say"})
}

// queue writes candidates' keys of one election directly.
type queue struct {
	t        testing.TB
	election string
	admin    *clientv3.Client
}

func newQueue(t testing.TB, cluster *etcdtest.Cluster) *queue {
	t.Helper()
	q := &queue{t: t, election: etcdtest.Election(t), admin: cluster.Client(t)}
	return q
}

// leads makes the candidate with the value the only one.
func (q *queue) leads(lease int64, value []byte) (token int64) {
	q.t.Helper()
	begin, end := keys.Range(q.election)
	resp, err := q.admin.Txn(etcdtest.Context(q.t)).Then(
		clientv3.OpDelete(begin, clientv3.WithRange(keys.Candidate(q.election, lease))),
		clientv3.OpDelete(keys.Candidate(q.election, lease)+"\x00", clientv3.WithRange(end)),
		clientv3.OpPut(keys.Candidate(q.election, lease), string(value)),
	).Commit()
	require.NoError(q.t, err)
	return resp.Header.Revision
}

// leader makes a node the only candidate.
func (q *queue) leader(lease int64, n *node) (token int64) {
	q.t.Helper()
	return q.leads(lease, n.value(q.t))
}

// value returns the node's value in etcd.
func (n *node) value(t testing.TB) []byte {
	t.Helper()
	value, err := identity.Protobuf{}.Encode(identity.Identity{NodeID: n.id, Instance: "1", Address: n.address, TTL: 10 * time.Second})
	require.NoError(t, err)
	return value
}

func (q *queue) nobody() {
	q.t.Helper()
	_, err := q.admin.Delete(etcdtest.Context(q.t), keys.Prefix(q.election), clientv3.WithPrefix())
	require.NoError(q.t, err)
}

// dial connects to an election's leader through a resolver.
func dial(t testing.TB, election string, builder grpcresolver.Builder, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append([]grpc.DialOption{grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)
	conn, err := grpc.NewClient(resolver.Target(election), options...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// call returns the name of the node that is reached.
func call(ctx context.Context, conn *grpc.ClientConn, options ...grpc.CallOption) (string, error) {
	var who wrapperspb.StringValue
	err := conn.Invoke(ctx, "/test.Node/Who", &emptypb.Empty{}, &who, options...)
	return who.GetValue(), err
}

// requireAnswer calls once, and requires an answer of the given node.
func requireAnswer(t testing.TB, conn *grpc.ClientConn, n *node) {
	t.Helper()
	who, err := call(etcdtest.Context(t), conn)
	require.NoError(t, err)
	require.Equal(t, n.id, who)
}

// reaches calls until the given node answers.
func reaches(t testing.TB, conn *grpc.ClientConn, n *node) {
	t.Helper()
	ctx := etcdtest.Context(t)
	for {
		who, err := call(ctx, conn, grpc.WaitForReady(true))
		if ctx.Err() != nil {
			require.FailNow(t, "not reached", "%s; last %q, %v", n.id, who, err)
		}
		if who == n.id {
			return
		}
	}
}

// client is a gRPC client connection as a resolver sees it. It records the resolver's updates, and
// fails the test at an update that is not allowed.
type client struct {
	grpcresolver.ClientConn
	t testing.TB

	mu        sync.Mutex
	addresses []string
	errs      []error
}

func newClient(t testing.TB) *client { return &client{t: t} }

func (c *client) UpdateState(s grpcresolver.State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(s.Addresses) != 1 || s.Addresses[0].Addr == "" || len(s.Endpoints) > 0 {
		c.t.Errorf("published %v: never several, never none", s)
		return errors.New("refused")
	}
	c.addresses = append(c.addresses, s.Addresses[0].Addr)
	return nil
}

func (c *client) ReportError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.addresses) > 0 {
		c.t.Errorf("reported %v after %v: the last address stays", err, c.addresses)
	}
	if _, ok := status.FromError(err); ok {
		c.t.Errorf("reported an error with a status of its own, of which gRPC would make that of the calls: %v", err)
	}
	c.errs = append(c.errs, err)
}

// told counts the addresses and errors that were published or reported.
func (c *client) told() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.addresses) + len(c.errs)
}

// until waits until the published addresses and reported errors are as wanted.
func (c *client) until(want func(addresses []string, errs []error) bool) {
	c.t.Helper()
	etcdtest.Eventually(c.t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return want(c.addresses, c.errs)
	}, "what was published and reported is as wanted")
}

// reports waits for an error.
func (c *client) reports(target error) {
	c.t.Helper()
	c.until(func(_ []string, errs []error) bool { return len(errs) > 0 && errors.Is(errs[len(errs)-1], target) })
}

// isLedTo waits until exactly the addresses of these nodes have been published, in this order.
func (c *client) isLedTo(nodes ...*node) {
	c.t.Helper()
	want := make([]string, len(nodes))
	for i, n := range nodes {
		want[i] = n.address
	}
	c.until(func(addresses []string, _ []error) bool { return len(addresses) >= len(want) })
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Equal(c.t, want, c.addresses)
}

// build starts a resolver for a client.
func (c *client) build(builder grpcresolver.Builder, election string, options ...func(*grpcresolver.BuildOptions)) grpcresolver.Resolver {
	c.t.Helper()
	opts := grpcresolver.BuildOptions{DialCreds: insecure.NewCredentials()}
	for _, f := range options {
		f(&opts)
	}
	r, err := builder.Build(target(c.t, election), c, opts)
	require.NoError(c.t, err)
	c.t.Cleanup(r.Close)
	return r
}
