package curator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// claiming is the metadata of a call that says that a node has forwarded it.
func claiming(ctx context.Context, node, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, hopKey, token, fromKey, node, agentKey, "somebody else", authorityKey, "elsewhere")
}

// mutual has a node prove that it is id and ask for certificates of callers who have one;
// it believes hops of nodes only.
func (a *authority) mutual(id string) func(*Config) {
	own := a.secure(id)
	cert := a.node(id)
	return func(cfg *Config) {
		own(cfg)
		cfg.ServerCredentials = credentials.NewTLS(a.Server(cert, tls.VerifyClientCertIfGiven))
		cfg.VerifyHop = NodeCertificate
	}
}

// With mutual TLS a hop is believed of the node whose certificate says so, and of nobody
// else: not of callers without a certificate, nor with one of their own, nor of another
// node.
func TestHopsOfNodesOnly(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	leader, follower := newNode(t, "leader", a.mutual("leader")), newNode(t, "follower", a.mutual("follower"))
	var saw witness
	leader.leads(7, &script{unary: func(ctx context.Context, in *message) (*message, error) { saw.sees(ctx); return in, nil }, stream: echoes})
	follower.front.router.follow(leader.as(7))
	dial := func(n *node, id string, certificates ...tls.Certificate) *grpc.ClientConn {
		return dialTo(t, n.address, grpc.WithTransportCredentials(a.as(id, certificates...)))
	}
	for name, tc := range map[string]struct {
		conn *grpc.ClientConn
		from string
		want codes.Code
	}{
		"nobody":                {dial(leader, "leader"), "follower", codes.PermissionDenied},
		"nobody, of no node":    {dial(leader, "leader"), "", codes.PermissionDenied},
		"a caller":              {dial(leader, "leader", a.node("caller")), "follower", codes.PermissionDenied},
		"a caller, by its name": {dial(leader, "leader", a.node("caller")), "caller", codes.OK}, // to us it is a node: the authority named it
		"another node":          {dial(leader, "leader", a.node("other")), "follower", codes.PermissionDenied},
		"the node":              {dial(leader, "leader", a.node("follower")), "follower", codes.OK},
		"a stranger's node":     {dial(leader, "leader", stranger.node("follower")), "follower", codes.Unavailable}, // no connection
		"at a follower":         {dial(follower, "follower"), "leader", codes.PermissionDenied},
	} {
		calls := leader.calls.Load()
		n := &node{t: t, conn: tc.conn}
		_, err := n.unary(claiming(etcdtest.Context(t), tc.from, "7"), "")
		require.Equal(t, tc.want, status.Code(err), "%s: %v", name, err)
		if tc.want == codes.OK {
			calls++
		}
		require.Equal(t, calls, leader.calls.Load(), name)
		if tc.want == codes.PermissionDenied {
			_, told := LostLeadership(err, "test")
			require.False(t, told, "it is not to be retried")
			stream := n.open(claiming(etcdtest.Context(t), tc.from, "7"), bidiMethod)
			require.Equal(t, codes.PermissionDenied, status.Code(stream.end()), name)
		}
		require.NoError(t, tc.conn.Close())
	}

	// Whoever claims nothing is a caller, with or without a certificate, at each node.
	for id, n := range map[string]*node{"leader": leader, "follower": follower} {
		for _, certificates := range [][]tls.Certificate{nil, {a.node("caller")}} {
			n.conn = dial(n, id, certificates...)
			for range 2 {
				out, err := n.unary(etcdtest.Context(t), "hello")
				require.NoError(t, err)
				require.Equal(t, "hello", out)
			}
			require.NotContains(t, saw.md[":authority"], "elsewhere")
			require.NoError(t, n.conn.Close())
		}
		n.conn = nil
	}
}

// A node without TLS to its leader, or whose certificate names another one, cannot
// forward; its callers are told what is wrong and not that they should try again.
func TestNodesThatAreNotBelieved(t *testing.T) {
	a := newAuthority(t)
	leader := newNode(t, "leader", a.mutual("leader"))
	leader.leads(7, &script{unary: echo})
	misnamed := newNode(t, "follower", a.mutual("somebody"))
	misnamed.front.router.follow(leader.as(7))
	a.caller(misnamed, "somebody")
	_, err := misnamed.unary(etcdtest.Context(t), "")
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	require.ErrorContains(t, err, `node "follower" has forwarded it: it came with the certificate of ["somebody"]`)
	require.Zero(t, leader.calls.Load())

	plain := newNode(t, "leader", func(cfg *Config) { cfg.VerifyHop = NodeCertificate })
	plain.leads(7, &script{unary: echo})
	_, err = plain.unary(claiming(etcdtest.Context(t), "leader", "7"), "")
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	require.ErrorContains(t, err, "without TLS")
	_, err = plain.unary(etcdtest.Context(t), "")
	require.NoError(t, err)
	require.ErrorContains(t, NodeCertificate(context.Background(), "n"), "nobody is known")
	verified := credentials.TLSInfo{State: tls.ConnectionState{PeerCertificates: []*x509.Certificate{a.Issue("n").Leaf}}}
	err = NodeCertificate(grpcpeer.NewContext(context.Background(), &grpcpeer.Peer{AuthInfo: verified}), "n")
	require.ErrorContains(t, err, "that was verified", "a certificate that was shown and not verified")
}

// Whatever the user's function says is what the caller is told; it is asked of claims
// only, and told the node's id as it is, and never for what was not a hop.
func TestVerifyHop(t *testing.T) {
	var asked atomic.Int64
	var said error
	leader := newNode(t, "leader", func(cfg *Config) {
		cfg.VerifyHop = func(ctx context.Context, node string) error {
			asked.Add(1)
			if p, ok := grpcpeer.FromContext(ctx); !ok || p.Addr == nil {
				return errors.New("no peer")
			}
			if node != "näch/ste %r\x1b" {
				return errors.New("who is that?")
			}
			return said
		}
	})
	leader.leads(7, &script{unary: echo})
	follower := newNode(t, "näch/ste %r\x1b")
	follower.front.router.follow(leader.as(7))
	for _, n := range []*node{leader, follower} {
		_, err := n.unary(etcdtest.Context(t), "")
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, asked.Load(), "of a caller, too")
	_, err := leader.unary(claiming(etcdtest.Context(t), "x%1B[31m", "7"), "")
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	require.Contains(t, err.Error(), `"x\x1b[31m"`)
	_, err = leader.unary(claiming(etcdtest.Context(t), "x", "+7"), "")
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.EqualValues(t, 2, asked.Load(), "of what is no hop")
	said = status.Error(codes.Unauthenticated, "log in first")
	for _, n := range []*node{leader, follower} {
		if n == leader {
			_, err = n.unary(claiming(etcdtest.Context(t), "n%C3%A4ch%2Fste%20%25r%1B", "7"), "")
		} else {
			_, err = n.unary(etcdtest.Context(t), "")
		}
		require.Equal(t, codes.Unauthenticated, status.Code(err))
		require.ErrorContains(t, err, "log in first")
	}
	require.EqualValues(t, 2, leader.calls.Load())
}

// tap is a listener that keeps what is sent to it.
type tap struct {
	net.Listener
	got chan []byte
}

func newTap(t *testing.T) *tap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &tap{listener, make(chan []byte, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := p.Accept()
			if err != nil {
				return
			}
			heard := make([]byte, 64<<10)
			n, _ := conn.Read(heard) // nobody answers: the other side says what it says first
			p.got <- heard[:n]
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = p.Close(); <-done })
	return p
}

// A leader that speaks no TLS is not spoken to in plain text by nodes that are to use it:
// not a byte of a request leaves. And the other way round: a node in plain text, at a
// leader with TLS, gets nowhere.
func TestNoPlainTextWhereTLSIsConfigured(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	const secret = "what nobody else may read"
	follower := newNode(t, "follower", a.mutual("follower"), func(cfg *Config) { cfg.Wait = 300 * time.Millisecond })
	a.caller(follower, "follower")
	p := newTap(t)
	to := follower.as(7)
	to.NodeID, to.Instance, to.Address = "leader", "", p.Addr().String()
	follower.front.router.follow(to)
	for range 2 { // before it is known to be unary, and after
		_, err := follower.unary(metadata.AppendToOutgoingContext(etcdtest.Context(t), "password", secret), secret)
		require.True(t, requireRetry(t, err).GetNothingApplied())
		follower.front.router.Now().peer.unary.learn(unaryMethod)
	}
	heard := etcdtest.Take(t, p.got, "the attempt")
	require.NotEmpty(t, heard)
	require.Equal(t, byte(22), heard[0], "a TLS handshake") // and nothing else is said before it is done
	require.NotContains(t, string(heard), secret)

	plain := newNode(t, "leader")
	plain.leads(8, &script{unary: echo})
	follower.front.router.follow(plain.as(8))
	_, err := follower.unary(etcdtest.Context(t), secret)
	require.True(t, requireRetry(t, err).GetNothingApplied())
	require.Zero(t, plain.calls.Load())

	leader := newNode(t, "leader", a.mutual("leader"))
	leader.leads(9, &script{unary: echo})
	careless := newNode(t, "follower", func(cfg *Config) {
		cfg.Wait = 300 * time.Millisecond
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithTransportCredentials(insecure.NewCredentials()))
	})
	careless.front.router.follow(leader.as(9))
	_, err = careless.unary(etcdtest.Context(t), "")
	require.True(t, requireRetry(t, err).GetNothingApplied())
	require.Zero(t, leader.calls.Load())
}

// watchman keeps what interceptors have seen of calls.
type watchman struct {
	mu sync.Mutex
	// first are the calls of the interceptor that gRPC calls before all others, then those
	// of one that comes after the curator's own.
	first, then int
	trusted     []string // nodes that Forwarded has named
	keys        []string // of a hop
}

func (w *watchman) sees(ctx context.Context, calls *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*calls++
	if node, _, ok := Forwarded(ctx); ok {
		w.trusted = append(w.trusted, node)
	}
	md, _ := metadata.FromIncomingContext(ctx)
	for _, key := range hopKeys {
		if _, there := md[key]; there {
			w.keys = append(w.keys, key)
		}
	}
}

func (w *watchman) options(cfg *Config) {
	unary := func(calls *int) grpc.UnaryServerInterceptor {
		return func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			w.sees(ctx, calls)
			return handle(ctx, in)
		}
	}
	stream := func(calls *int) grpc.StreamServerInterceptor {
		return func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			w.sees(s.Context(), calls)
			return handle(srv, s)
		}
	}
	cfg.ServerOptions = append(cfg.ServerOptions,
		grpc.UnaryInterceptor(unary(&w.first)), grpc.StreamInterceptor(stream(&w.first)),
		grpc.ChainUnaryInterceptor(unary(&w.then)), grpc.ChainStreamInterceptor(stream(&w.then)))
}

// Row 52: a hop is verified before interceptors are called, whichever service is called, the
// node's own included, and also where nobody has set VerifyHop but callers show certificates.
func TestRow52ForgedHopReachesNothing(t *testing.T) {
	for name, how := range map[string]func(a *authority) func(*Config){
		"required":                 func(a *authority) func(*Config) { return a.secure("leader") },
		"if given, and a function": func(a *authority) func(*Config) { return a.mutual("leader") },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			var w watchman
			var local atomic.Int64
			own := &script{
				unary:  func(_ context.Context, in *message) (*message, error) { local.Add(1); return in, nil },
				stream: func(grpc.ServerStream) error { local.Add(1); return nil },
			}
			leader := newNode(t, "leader", how(a), w.options, func(cfg *Config) {
				cfg.Local = func(r grpc.ServiceRegistrar) { r.RegisterService(describe("test.Local"), own) }
			})
			leader.leads(7, &script{unary: echo, stream: echoes})
			a.caller(leader, "leader")
			send := map[string]func(ctx context.Context) error{
				"elected, unary":  func(ctx context.Context) error { _, err := leader.unary(ctx, ""); return err },
				"elected, stream": func(ctx context.Context) error { return closed(leader.open(ctx, bidiMethod)) },
				"local, unary": func(ctx context.Context) error {
					return leader.conn.Invoke(ctx, "/test.Local/Unary", &message{}, &message{})
				},
				"local, stream": func(ctx context.Context) error { return closed(leader.open(ctx, "/test.Local/Bidi")) },
				"health": func(ctx context.Context) error {
					_, err := healthpb.NewHealthClient(leader.conn).Check(ctx, &healthpb.HealthCheckRequest{})
					return err
				},
			}
			for what, send := range send {
				require.Equal(t, codes.PermissionDenied, status.Code(send(claiming(etcdtest.Context(t), "follower", "7"))), "%s: a forged hop is served", what)
				require.Equal(t, codes.InvalidArgument, status.Code(send(claiming(etcdtest.Context(t), "follower", "+7"))), what)
			}
			require.Empty(t, w.trusted, "an interceptor believes a forged hop")
			require.Empty(t, w.keys, "an interceptor sees a forged hop")
			require.Zero(t, w.then, "an interceptor is called for a forged hop")
			require.Zero(t, leader.calls.Load()+local.Load(), "a handler is called for a forged hop")
			for what, send := range send { // a caller with metadata of a hop and without one
				require.NoError(t, send(metadata.AppendToOutgoingContext(etcdtest.Context(t), fromKey, "follower", agentKey, "x")), what)
			}
			require.Empty(t, w.trusted)
			require.Empty(t, w.keys)
			require.Equal(t, len(send), w.then)
		})
	}
}

// closed ends a stream that was sent nothing.
func closed(f *flow) error {
	if err := f.CloseSend(); err != nil {
		return err
	}
	return f.end()
}

// Row 52: Forwarded is what was verified: with certificates the node that forwarded, in
// interceptors and handlers; in plain text, where nobody has verified it, nothing.
func TestRow52ForwardedIsVerified(t *testing.T) {
	for name, secured := range map[string]bool{"certificates": true, "plain text": false} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			var w watchman
			leader, follower := newNode(t, "leader", w.options), newNode(t, "follower")
			if secured {
				leader, follower = newNode(t, "leader", a.secure("leader"), w.options), newNode(t, "follower", a.secure("follower"))
				a.caller(leader, "leader")
				a.caller(follower, "follower")
			}
			var said []string
			leader.leads(7, &script{unary: func(ctx context.Context, in *message) (*message, error) {
				node, token, ok := Forwarded(ctx)
				said = append(said, fmt.Sprintf("%s %d %v", node, token, ok))
				return in, nil
			}})
			follower.front.router.follow(leader.as(7))
			for _, n := range []*node{leader, follower} {
				_, err := n.unary(etcdtest.Context(t), "")
				require.NoError(t, err)
			}
			require.Empty(t, w.keys)
			if secured {
				require.Equal(t, []string{"follower", "follower"}, w.trusted)
				require.Equal(t, []string{" 0 false", "follower 7 true"}, said)
			} else {
				require.Empty(t, w.trusted, "nobody has verified it")
				require.Equal(t, []string{" 0 false", " 0 false"}, said)
			}
		})
	}
}

// Row 52: a certificate names a node by its whole name; one for many names is no node's.
func TestRow52WildcardIsNoNode(t *testing.T) {
	a := newAuthority(t)
	asked := func(node string, names ...string) error {
		cert := a.Issue(names...).Leaf
		state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert}}}
		return NodeCertificate(grpcpeer.NewContext(t.Context(), &grpcpeer.Peer{AuthInfo: credentials.TLSInfo{State: state}}), node)
	}
	for name, names := range map[string][]string{
		"exact":    {"n1.nodes.test"},
		"both":     {"*.nodes.test", "n1.nodes.test"},
		"capitals": {"N1.Nodes.test"},
	} {
		require.NoError(t, asked("n1.nodes.test", names...), name)
	}
	require.NoError(t, asked("10.0.0.1", "10.0.0.1"))
	const wildcard = "*.nodes.test"
	err := asked("n1.nodes.test", wildcard)
	require.Error(t, err, "a wildcard is every node")
	require.ErrorContains(t, err, `the certificate of ["*.nodes.test"]`)
	require.Error(t, asked("*.nodes.test", wildcard))
}
