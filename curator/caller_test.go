package curator

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// connect has calls of the test's come to a node from whoever has these certificates, until
// the test ends.
func (a *authority) connect(n *node, certificates ...tls.Certificate) *node {
	a.t.Helper()
	conn := dialTo(a.t, n.address, grpc.WithTransportCredentials(a.as(n.cfg.Elector.NodeID, certificates...)))
	a.t.Cleanup(func() { _ = conn.Close() })
	return &node{t: a.t, conn: conn, address: n.address}
}

// porter keeps whom interceptors and handlers have seen.
type porter struct{ seen []string }

func (p *porter) sees(ctx context.Context, where string) {
	who := "nobody"
	if cert, ok := Caller(ctx); ok {
		who = cert.DNSNames[0]
	} else if cert != nil {
		who = "a certificate, and not ok"
	}
	p.seen = append(p.seen, where+": "+who)
}

func (p *porter) script(where string) *script {
	return &script{
		unary:  func(ctx context.Context, in *message) (*message, error) { p.sees(ctx, where); return in, nil },
		stream: func(s grpc.ServerStream) error { p.sees(s.Context(), where); return echoes(s) },
	}
}

// options has a node report what its first interceptor sees, and serve a local service.
func (p *porter) options(cfg *Config) {
	where := cfg.Elector.NodeID
	cfg.ServerOptions = append(cfg.ServerOptions,
		grpc.UnaryInterceptor(func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			p.sees(ctx, where)
			return handle(ctx, in)
		}),
		grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if strings.HasPrefix(info.FullMethod, "/test.") { // and not what nodes ask each other
				p.sees(s.Context(), where)
			}
			return handle(srv, s)
		}))
	cfg.Local = func(r grpc.ServiceRegistrar) { r.RegisterService(describe("test.Local"), p.script("local")) }
}

// saw returns what was seen during f.
func (p *porter) saw(f func()) []string {
	p.seen = nil
	f()
	return p.seen
}

// The leader knows who called a follower: by the certificate that the follower has verified,
// in interceptors and handlers, of unary calls and of streams; and nobody, where the caller
// has shown none. A direct caller's is the connection's, for local services as well.
func TestCallerOverTheHop(t *testing.T) {
	a := newAuthority(t)
	var p porter
	leader, follower := newNode(t, "leader", a.mutual("leader"), p.options), newNode(t, "follower", a.mutual("follower"), p.options)
	leader.leads(7, p.script("handler"))
	follower.front.router.follow(leader.as(7))
	for who, certificates := range map[string][]tls.Certificate{"alice": {a.node("alice")}, "bob": {a.node("bob")}, "nobody": nil} {
		for _, n := range []*node{leader, follower} {
			id := n.cfg.Elector.NodeID
			want := []string{"leader: " + who, "handler: " + who}
			if n == follower {
				want = append([]string{"follower: " + who}, want...)
			}
			from := a.connect(n, certificates...)
			for range 2 { // before it is known to be unary, and after
				require.Equal(t, want, p.saw(func() {
					_, err := from.unary(etcdtest.Context(t), "")
					require.NoError(t, err)
				}), "unary, at the %s", id)
			}
			require.Equal(t, want, p.saw(func() { require.NoError(t, closed(from.open(etcdtest.Context(t), bidiMethod))) }), "a stream, at the %s", id)
			require.Equal(t, []string{id + ": " + who, "local: " + who}, p.saw(func() {
				require.NoError(t, from.conn.Invoke(etcdtest.Context(t), "/test.Local/Unary", &message{}, &message{}))
			}), "local")
		}
	}
	_, ok := Caller(context.Background())
	require.False(t, ok, "where there is no call")
}

// naming is what a node says of a caller, as metadata.
func naming(cert []byte) []string { return []string{oddKey, callerKey, oddKey, string(cert)} }

// What a caller says of itself is not believed, at a leader or a follower, whichever way it
// says it. Nor is what a node of an earlier version passes on under the key of ours.
func TestForgedCallerIsNotBelieved(t *testing.T) {
	a := newAuthority(t)
	var p porter
	leader, follower := newNode(t, "leader", a.mutual("leader"), p.options), newNode(t, "follower", a.mutual("follower"), p.options)
	leader.leads(7, p.script("handler"))
	follower.front.router.follow(leader.as(7))
	root := a.node("root").Certificate[0]
	for name, forged := range map[string][]string{
		"the key":  {callerKey, string(root)},
		"the pair": naming(root),
		"both":     append(naming(root), callerKey, string(root)),
		"twice":    append(naming(root), naming(root)...),
	} {
		for who, certificates := range map[string][]tls.Certificate{"alice": {a.node("alice")}, "nobody": nil} {
			for _, n := range []*node{leader, follower} {
				from := a.connect(n, certificates...)
				for range 2 {
					for _, saw := range p.saw(func() {
						_, err := from.unary(metadata.AppendToOutgoingContext(etcdtest.Context(t), forged...), "")
						require.NoError(t, err)
					}) {
						require.True(t, strings.HasSuffix(saw, ": "+who), "a forged caller is believed: %s, with %s, at the %s", saw, name, n.cfg.Elector.NodeID)
					}
				}
			}
		}
	}

	// Over a hop that is verified the pair is believed, the key is not.
	hop := a.connect(leader, a.node("follower"))
	for want, said := range map[string][]string{
		"root":     naming(root),
		"nobody":   {callerKey, string(root)},
		"nobody ":  naming(nil),
		"nobody  ": naming([]byte("no certificate")),
		" nobody":  {oddKey, "X-" + callerKey, oddKey, string(root)},
	} {
		want = strings.TrimSpace(want)
		require.Equal(t, []string{"leader: " + want, "handler: " + want}, p.saw(func() {
			_, err := hop.unary(metadata.AppendToOutgoingContext(claiming(etcdtest.Context(t), "follower", "7"), said...), "")
			require.NoError(t, err)
		}), "what an older node passes on is believed, or what a node says is not")
	}

	// A hop that is refused names nobody else than the connection does.
	require.NotContains(t, p.saw(func() {
		_, err := a.connect(leader, a.node("alice")).unary(metadata.AppendToOutgoingContext(claiming(etcdtest.Context(t), "follower", "7"), naming(root)...), "")
		require.Equal(t, codes.PermissionDenied, status.Code(err))
	}), "leader: root")
}

// Where nobody has verified the hop, what it says of the caller is worth nothing: in plain
// text, and of a connection without a certificate where those are not required.
func TestCallerOfAnUnverifiedHop(t *testing.T) {
	a := newAuthority(t)
	root := a.node("root").Certificate[0]
	for name, change := range map[string]func(*Config){
		"plain text": func(*Config) {},
		"no certificate": func(cfg *Config) {
			a.mutual("leader")(cfg)
			cfg.VerifyHop = nil
		},
	} {
		var p porter
		leader := newNode(t, "leader", change, p.options)
		leader.leads(7, p.script("handler"))
		from := leader
		if leader.cfg.ServerCredentials != nil {
			from = a.connect(leader)
		}
		require.Equal(t, []string{"leader: nobody", "handler: nobody"}, p.saw(func() {
			_, err := from.unary(metadata.AppendToOutgoingContext(claiming(etcdtest.Context(t), "follower", "7"), naming(root)...), "")
			require.NoError(t, err)
		}), "an unverified hop's caller is believed: %s", name)
	}
}

// A certificate that the follower was shown and has not verified is not passed on.
func TestUnverifiedCallerIsNotPassedOn(t *testing.T) {
	a := newAuthority(t)
	var p porter
	leader := newNode(t, "leader", a.mutual("leader"), p.options)
	follower := newNode(t, "follower", a.mutual("follower"), p.options, func(cfg *Config) {
		cfg.ServerCredentials = credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{a.node("follower")}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13,
		})
	})
	leader.leads(7, p.script("handler"))
	follower.front.router.follow(leader.as(7))
	require.Equal(t, []string{"follower: nobody", "leader: nobody", "handler: nobody"}, p.saw(func() {
		_, err := a.connect(follower, newAuthority(t).node("root")).unary(etcdtest.Context(t), "")
		require.NoError(t, err)
	}))
}

// metered counts the bytes that come in.
type metered struct {
	net.Listener
	bytes *atomic.Int64
}

func (m metered) Accept() (net.Conn, error) {
	conn, err := m.Listener.Accept()
	return meteredConn{conn, m.bytes}, err
}

type meteredConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

// hopSize is how many bytes come to the leader for each of many forwarded calls of a few
// callers in turns.
func hopSize(t *testing.T, callers int, secure func(a *authority, id string) func(*Config)) int64 {
	a := newAuthority(t)
	var bytes atomic.Int64
	leader := newNode(t, "leader", secure(a, "leader"), func(cfg *Config) { cfg.Listener = metered{cfg.Listener, &bytes} })
	follower := newNode(t, "follower", secure(a, "follower"))
	leader.leads(7, &script{unary: echo})
	follower.front.router.follow(leader.as(7))
	var from []*node
	for i := range callers {
		from = append(from, a.connect(follower, a.node(fmt.Sprintf("caller-%d", i))))
	}
	call := func() {
		for _, n := range from {
			_, err := n.unary(etcdtest.Context(t), "")
			require.NoError(t, err)
		}
	}
	for range 20 {
		call()
	}
	first := bytes.Load()
	const turns = 50
	for range turns {
		call()
	}
	return (bytes.Load() - first) / int64(turns*callers)
}

// On one connection a certificate crosses in full once: HTTP/2 compresses headers that repeat.
func TestCallerCostsLittle(t *testing.T) {
	size := len(newAuthority(t).node("caller-0").Certificate[0])
	each := hopSize(t, 1, (*authority).mutual)
	t.Logf("a certificate of %d bytes; %d bytes for each call of one caller", size, each)
	require.Less(t, each, int64(size)*2/3, "the certificate crosses with each call")
}

// The certificate counts as metadata of the hop: a large one is refused by the limit as other
// metadata is, an ordinary one leaves room for the caller's.
func TestCallerWithinMaxMetadata(t *testing.T) {
	a := newAuthority(t)
	lower := func(cfg *Config) { cfg.MaxMetadata = 8 << 10 }
	leader, follower := newNode(t, "leader", a.mutual("leader"), lower), newNode(t, "follower", a.mutual("follower"), lower)
	leader.leads(7, &script{unary: echo})
	follower.front.router.follow(leader.as(7))
	names := []string{"large"}
	for i := range 300 {
		names = append(names, fmt.Sprintf("name-%d.of.a.large.certificate", i))
	}
	large := a.Issue(names...)
	ordinary := a.node("ordinary")
	for range 2 {
		much := metadata.AppendToOutgoingContext(etcdtest.Context(t), "much", strings.Repeat("x", 6<<10))
		for _, n := range []*node{leader, follower} {
			_, err := a.connect(n, ordinary).unary(much, "")
			require.NoError(t, err)
		}
		_, err := a.connect(leader, large).unary(etcdtest.Context(t), "")
		require.NoError(t, err)
		_, err = a.connect(follower, large).unary(etcdtest.Context(t), "")
		require.Equal(t, codes.Internal, status.Code(err), "%v", err)
	}
}

// BenchmarkCaller is what it costs a forwarded unary call over TLS that the caller has shown
// a certificate, and that the leader's handler asks for it.
func BenchmarkCaller(b *testing.B) {
	a := newAuthority(b)
	var asks atomic.Bool
	leader, follower := newNode(b, "leader", a.mutual("leader")), newNode(b, "follower", a.mutual("follower"))
	leader.leads(7, &script{unary: func(ctx context.Context, in *message) (*message, error) {
		if asks.Load() {
			Caller(ctx)
		}
		return in, nil
	}})
	follower.front.router.follow(leader.as(7))
	nobody, somebody := a.connect(follower), a.connect(follower, a.node("somebody"))
	for _, way := range []struct {
		name string
		from *node
		asks bool
	}{{"none", nobody, false}, {"shown", somebody, false}, {"asked", somebody, true}} {
		b.Run(way.name, func(b *testing.B) {
			asks.Store(way.asks)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := way.from.unary(context.Background(), ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
