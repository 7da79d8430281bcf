package curator

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Parallel(12)
	etcdtest.Main(m)
}

// node is a curator with a caller's connection. The test sets its route directly: it is in no
// election, unless it was made by run.
type node struct {
	*Curator
	t       testing.TB
	conn    *grpc.ClientConn
	address string
	calls   atomic.Int64 // of the script's handlers, see count
	round   atomic.Int64
}

// count counts a call of the script's handlers. A call that names a round counts in that round only: the
// handler of a call that was given up may begin after the caller has gone on to the next one.
func (n *node) count(ctx context.Context) {
	if round := metadata.ValueFromIncomingContext(ctx, "round"); len(round) > 0 && round[0] != fmt.Sprint(n.round.Load()) {
		return
	}
	n.calls.Add(1)
}

// calm is the heartbeat of tests of other features: on a busy machine a thousand calls may wait at
// a leader, which must not count as failed.
var calm = heartbeat{every: defaultHeartbeat.every, timeout: etcdtest.Patience, misses: 2}

func newNode(t testing.TB, id string, change ...func(*Config)) *node {
	t.Helper()
	return newNodeBeating(t, calm, id, change...)
}

func newNodeBeating(t testing.TB, beat heartbeat, id string, change ...func(*Config)) *node {
	t.Helper()
	cfg := Config{
		Elector:   elector.Config{Election: "test", NodeID: id, Source: elector.Always(elector.Clients{})},
		Listeners: []Listener{{Listener: listen(t)}},
		Services:  func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error { return nil },
	}
	n := &node{t: t, address: cfg.Listeners[0].Addr().String()}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	n.Curator, err = build(cfg, beat)
	require.NoError(t, err)
	served := n.servers.serve(n.cfg.Listeners)
	if n.cfg.Listeners[0].Credentials == nil {
		n.conn = dialTo(t, n.address)
	}
	t.Cleanup(func() {
		n.stopping()
		if tenure := n.router.Stop(errStopped); tenure != nil {
			over := asking(func() error { tenure.Finish(errStopped); return nil })
			require.NoError(t, etcdtest.Take(t, over, "the end of the handlers"))
		}
		if n.conn != nil {
			_ = n.conn.Close()
		}
		_ = n.close(10*time.Millisecond, errStopped)
		for len(served) > 0 { // it had hardly begun to serve
			require.ErrorIs(t, <-served, grpc.ErrServerStopped)
		}
	})
	return n
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func dialTo(t testing.TB, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// routed waits for a route that want accepts.
func (n *node) routed(want func(*route) bool) {
	n.t.Helper()
	_, err := n.router.Reader().NextWhere(etcdtest.Context(n.t), want)
	require.NoError(n.t, err)
}

// leads makes the node lead with a token, and serve the script.
func (n *node) leads(token eldest.Token, s *script) *tenure {
	n.t.Helper()
	return n.leadsWhile(token, s, func() bool { return true })
}

// leadsWhile is leads in a tenure whose clock has ended when holds returns false.
func (n *node) leadsWhile(token eldest.Token, s *script, holds func() bool) *tenure {
	n.t.Helper()
	t := newTenure(context.Background(), token, holds)
	r := newServices(n.local.names, nil)
	r.RegisterService(describe("test.Script"), &script{stream: func(stream grpc.ServerStream) error {
		n.count(stream.Context())
		return s.stream(stream)
	}, unary: func(ctx context.Context, in *message) (*message, error) {
		n.count(ctx)
		return s.unary(ctx, in)
	}})
	var err error
	t.Service, err = r.close()
	require.NoError(n.t, err)
	require.NoError(n.t, n.router.Lead(t))
	return t
}

// expired is for a tenure that has ended by the clock, while its node has not been notified: the
// node refuses calls, and announces nothing.
func expired() bool { return false }

// loses ends the tenure that the node leads in, as the elector does.
func (n *node) loses() {
	t := n.router.Now().Tenure
	n.router.Leave(t, errDeposed)
	t.Finish(errDeposed)
}

// errDeposed is why a tenure of these tests ends.
var errDeposed = fmt.Errorf("%w: by the test", eldest.ErrDeposed)

// as is the node as other nodes see it while it leads.
func (n *node) as(token eldest.Token) elector.Leader {
	var l elector.Leader
	l.NodeID, l.Address, l.Instance, l.Token = n.cfg.Elector.NodeID, n.address, n.elector.Instance(), token
	return l
}

func (n *node) follows(leader *node, token eldest.Token) { n.router.Follow(leader.as(token)) }

// followsAt makes the node follow a leader with token 7 at an address of no node of the test.
func (n *node) followsAt(address string) {
	var l elector.Leader
	l.NodeID, l.Address, l.Token = "leader", address, 7
	n.router.Follow(l)
}

// learns makes the node store that the leader's method is unary, and connects it.
func (n *node) learns() {
	n.t.Helper()
	p := n.router.Now().Peer
	p.unary.Store(unaryMethod, nil)
	conn, err := p.take("the test")
	require.NoError(n.t, err)
	defer conn.done()
	conn.link.Connect()
	etcdtest.Eventually(n.t, func() bool { return conn.link.GetState() == connectivity.Ready }, "there is a connection")
}

// pair is a leader and a follower.
func pair(t testing.TB, s *script, change ...func(*Config)) (leader, follower *node) {
	t.Helper()
	leader, follower = newNode(t, "leader", change...), newNode(t, "follower", change...)
	leader.leads(7, s)
	follower.follows(leader, 7)
	return leader, follower
}

// everywhere runs a test for callers of the leader, of a follower, and of a follower that has
// stored which methods are unary. The result must be the same.
func everywhere(t *testing.T, s *script, test func(t *testing.T, n, leader *node), change ...func(*Config)) {
	t.Helper()
	for _, place := range []string{"leader", "follower", "follower that knows"} {
		t.Run(place, func(t *testing.T) {
			leader, follower := pair(t, s, change...)
			n := follower
			switch place {
			case "leader":
				n = leader
			case "follower that knows":
				follower.learns()
			}
			test(t, n, leader)
			require.Zero(t, follower.calls.Load(), "the follower has the service, too")
		})
	}
}

// Changes of a node's configuration.

func waits(d time.Duration) func(*Config) { return func(cfg *Config) { cfg.Wait = d } }
func grace(d time.Duration) func(*Config) {
	return func(cfg *Config) { cfg.Drain, cfg.Grace, cfg.Shutdown = d, d, d }
}

// patient waits as long as a test does.
func patient(cfg *Config) {
	cfg.Wait = etcdtest.Patience
	grace(etcdtest.Patience)(cfg)
}

// intercept calls before for each stream of frames to an elected service that comes to the node.
// Its error is the answer.
func intercept(before func(ctx context.Context) error) func(*Config) {
	return func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if slices.Contains([]string{unaryMethod, clientMethod, serverMethod, bidiMethod}, info.FullMethod) {
				if err := before(stream.Context()); err != nil {
					return err
				}
			}
			return handle(srv, stream)
		}))
	}
}

// counted counts the calls that come to the node.
func counted(n *atomic.Int64) func(*Config) {
	return intercept(func(context.Context) error { n.Add(1); return nil })
}

// through makes the node dial leaders over connections that change wraps.
func through(change func(net.Conn) net.Conn) func(*Config) {
	return func(cfg *Config) {
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			return change(c), nil
		}))
	}
}

// observed receives what gRPC reports of a node's calls to leaders.
type observed func(stats.RPCStats)

func (o observed) HandleRPC(_ context.Context, s stats.RPCStats)                   { o(s) }
func (observed) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (observed) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (observed) HandleConn(context.Context, stats.ConnStats)                       {}

func observing(f func(stats.RPCStats)) func(*Config) {
	return func(cfg *Config) { cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithStatsHandler(observed(f))) }
}

// refusals counts the answers to a node's calls that report that the call has not begun.
func refusals(n *atomic.Int64) func(*Config) {
	return observing(func(s stats.RPCStats) {
		if in, ok := s.(*stats.InTrailer); ok {
			if served := in.Trailer[servedKey]; len(served) > 0 && !slices.Contains(served, begun) {
				n.Add(1)
			}
		}
	})
}

// sends calls f when the node has sent a message that is not small, before the sender continues.
func sends(f func()) func(*Config) {
	return observing(func(s stats.RPCStats) {
		if out, ok := s.(*stats.OutPayload); ok && out.Length > 1000 {
			f()
		}
	})
}

// claiming is the context of a call that claims to be forwarded by a node.
func claiming(ctx context.Context, node, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, hopKey, token, fromKey, node, agentKey, "somebody else", authorityKey, "elsewhere")
}
