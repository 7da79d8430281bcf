package curator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A node whose certificate names another node cannot forward. Its callers receive what is wrong,
// and not that the call can be retried.
func TestNodesThatAreNotBelieved(t *testing.T) {
	a := newAuthority(t)
	leader, misnamed := newNode(t, "leader", a.mutual("leader")), newNode(t, "follower", a.mutual("somebody"))
	leader.leads(7, echoing)
	misnamed.follows(leader, 7)
	from := &node{t: t, conn: dialTo(t, misnamed.address, grpc.WithTransportCredentials(a.as("somebody")))}
	err := from.call("")
	requireCode(t, codes.PermissionDenied, err, `claims to have been forwarded by node "follower": it was sent with the certificate of ["somebody"]`)
	_, told := LostLeadership(err, "test")
	require.False(t, told, "it is not to be retried")
	require.Zero(t, leader.calls.Load())
	require.ErrorContains(t, NodeCertificate(context.Background(), "n"), "its sender is unknown")
	shown := credentials.TLSInfo{State: tls.ConnectionState{PeerCertificates: []*x509.Certificate{a.Issue("n").Leaf}}}
	err = NodeCertificate(grpcpeer.NewContext(context.Background(), &grpcpeer.Peer{AuthInfo: shown}), "n")
	require.ErrorContains(t, err, "without a verified certificate", "a certificate that was shown and not verified")
}

// The error of the user's function is the answer to the caller. The function is called only for
// calls that claim a hop, with the node's ID unescaped, and never for malformed hops.
func TestVerifyHop(t *testing.T) {
	var asked atomic.Int64
	var said error
	const id = "näch/ste %r\x1b"
	leader, follower := newNode(t, "leader", func(cfg *Config) {
		cfg.VerifyHop = func(ctx context.Context, node string) error {
			asked.Add(1)
			if p, ok := grpcpeer.FromContext(ctx); !ok || p.Addr == nil {
				return errors.New("no peer")
			}
			if node != id {
				return errors.New("who is that?")
			}
			return said
		}
	}), newNode(t, id)
	leader.leads(7, echoing)
	follower.follows(leader, 7)
	leader.answers("")
	follower.answers("")
	require.EqualValues(t, 1, asked.Load(), "of a caller, too")
	_, err := leader.unary(claiming(etcdtest.Context(t), "x%1B[31m", "7"), "")
	requireCode(t, codes.PermissionDenied, err, `"x\x1b[31m"`)
	_, err = leader.unary(claiming(etcdtest.Context(t), "x", "+7"), "")
	requireCode(t, codes.InvalidArgument, err)
	require.EqualValues(t, 2, asked.Load(), "of what is no hop")
	said = status.Error(codes.Unauthenticated, "log in first")
	requireCode(t, codes.Unauthenticated, follower.call(""), "log in first")
	_, err = leader.unary(claiming(etcdtest.Context(t), "n%C3%A4ch%2Fste%20%25r%1B", "7"), "")
	requireCode(t, codes.Unauthenticated, err, "log in first")
	require.EqualValues(t, 2, leader.calls.Load())
}

// callRecorder records what interceptors and handlers have seen of calls: where, which node
// Forwarded names, which caller Caller names, and keys of a hop.
type callRecorder struct {
	mu   sync.Mutex
	seen []string
	keys []string
}

func (w *callRecorder) sees(ctx context.Context, where string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	who := "nobody"
	if cert, ok := Caller(ctx); ok {
		who = cert.DNSNames[0]
	} else if cert != nil {
		who = "a certificate, and not ok"
	}
	if node, token, ok := Forwarded(ctx); ok {
		who = fmt.Sprintf("%s by %s in %d", who, node, token)
	}
	w.seen = append(w.seen, where+": "+who)
	md, _ := metadata.FromIncomingContext(ctx)
	for _, key := range hopKeys {
		if _, there := md[key]; there {
			w.keys = append(w.keys, key)
		}
	}
}

// saw returns what was seen during f.
func (w *callRecorder) saw(f func()) []string {
	w.seen = nil
	f()
	return w.seen
}

func (w *callRecorder) script(where string) *script {
	return &script{
		unary:  func(ctx context.Context, in *message) (*message, error) { w.sees(ctx, where); return in, nil },
		stream: func(s grpc.ServerStream) error { w.sees(s.Context(), where); return echoes(s) },
	}
}

// watches makes interceptors of a node record: the one that gRPC calls before all others, and one
// that comes after the curator's own. It also makes the node serve a local service that records.
func (w *callRecorder) watches(cfg *Config) {
	unary := func(where string) grpc.UnaryServerInterceptor {
		return func(ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if strings.HasPrefix(info.FullMethod, "/test.") { // no requests between nodes
				w.sees(ctx, cfg.Elector.NodeID+where)
			}
			return handle(ctx, in)
		}
	}
	stream := func(where string) grpc.StreamServerInterceptor {
		return func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if strings.HasPrefix(info.FullMethod, "/test.") {
				w.sees(s.Context(), cfg.Elector.NodeID+where)
			}
			return handle(srv, s)
		}
	}
	cfg.ServerOptions = append(cfg.ServerOptions,
		grpc.UnaryInterceptor(unary("")), grpc.StreamInterceptor(stream("")),
		grpc.ChainUnaryInterceptor(unary(", then")), grpc.ChainStreamInterceptor(stream(", then")))
	cfg.Local = func(r grpc.ServiceRegistrar) { r.RegisterService(describe("test.Local"), w.script("local")) }
}

// sending are the ways to call a node.
func sending(n *node) map[string]func(ctx context.Context) error {
	unary := func(method string) func(ctx context.Context) error {
		return func(ctx context.Context) error { return n.conn.Invoke(ctx, method, &message{}, &message{}) }
	}
	stream := func(method string) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			s, err := n.conn.NewStream(ctx, anyStream, method)
			if err != nil {
				return err
			}
			return errors.Join(s.CloseSend(), (&flow{ClientStream: s}).end())
		}
	}
	return map[string]func(ctx context.Context) error{
		"elected, unary": unary(unaryMethod), "elected, stream": stream(bidiMethod),
		"local, unary": unary("/test.Local/Unary"), "local, stream": stream("/test.Local/Bidi"),
		"health": unary(healthpb.Health_Check_FullMethodName),
	}
}

// Row 52: a hop is accepted from the node that the certificate names, and from no other client,
// before interceptors are called, for every service, the node's own included, and also if VerifyHop
// is not set but callers show certificates. What a caller claims about itself is not accepted, at a
// leader or a follower, in any form; nor is what a node of an earlier version passes on under the
// curator's key; nor is what an unverified hop contains about the caller.
func TestRow52WhatIsBelievedOfAHop(t *testing.T) {
	a := newAuthority(t)
	none, alice, node := []tls.Certificate(nil), []tls.Certificate{a.Issue("alice")}, []tls.Certificate{a.Issue("follower")}
	root := string(a.Issue("root").Certificate[0])
	claim := func(node, token string) []string {
		return []string{hopKey, token, fromKey, node, agentKey, "somebody else", authorityKey, "elsewhere"}
	}
	names := func(cert string) []string { return []string{oddKey, callerKey, oddKey, cert} }
	key, stray, half := []string{callerKey, root}, []string{fromKey, "follower", agentKey, "x"}, []string{oddKey, "key"}
	const ok, denied, invalid = codes.OK, codes.PermissionDenied, codes.InvalidArgument
	type row struct {
		from []tls.Certificate
		said [][]string
		want codes.Code
		who  string // the expected caller
	}
	elsewhere := [][]string{claim("follower", "7")}
	callers := []row{
		{none, nil, ok, "nobody"}, {none, [][]string{stray}, ok, "nobody"}, {none, [][]string{key}, ok, "nobody"}, {none, [][]string{names(root)}, ok, "nobody"},
		{none, [][]string{names(root), key}, ok, "nobody"}, {none, [][]string{names(root), names(root)}, ok, "nobody"}, {none, [][]string{half}, ok, "nobody"},
	}
	identified := []row{{alice, nil, ok, "alice"}, {alice, [][]string{stray}, ok, "alice"}, {alice, [][]string{key}, ok, "alice"}, {alice, [][]string{names(root)}, ok, "alice"}}
	forged := []row{
		{alice, elsewhere, denied, ""}, {alice, [][]string{claim("follower", "7"), names(root)}, denied, ""}, {alice, [][]string{claim("follower", "+7")}, invalid, ""},
		{[]tls.Certificate{a.Issue("other")}, elsewhere, denied, ""},
		{[]tls.Certificate{newAuthority(t).Issue("follower")}, elsewhere, codes.Unavailable, ""}, // no connection
	}
	hops := []row{
		{node, elsewhere, ok, "nobody by follower in 7"}, {node, [][]string{claim("follower", "7"), names(root)}, ok, "root by follower in 7"},
		{node, [][]string{claim("follower", "7"), key}, ok, "nobody by follower in 7"}, {node, [][]string{claim("follower", "7"), names("")}, ok, "nobody by follower in 7"},
		{node, [][]string{claim("follower", "7"), names("no certificate")}, ok, "nobody by follower in 7"},
		{node, [][]string{claim("follower", "7"), {oddKey, "X-" + callerKey, oddKey, root}}, ok, "nobody by follower in 7"},
		{alice, [][]string{claim("alice", "7")}, ok, "nobody by alice in 7"}, // it counts as a node: the authority has issued the certificate
	}
	anonymous := []row{{none, elsewhere, denied, ""}, {none, [][]string{claim("", "7")}, denied, ""}}
	unverified := []row{
		{none, elsewhere, ok, "nobody"}, {none, [][]string{claim("follower", "7"), names(root)}, ok, "nobody"},
		{none, [][]string{claim("follower", "7"), half}, invalid, ""}, // incomplete pairs, which no node sends (row 58)
	}
	for name, tc := range map[string]struct {
		secure func(*Config)
		rows   []row
	}{
		"required":                      {a.secure("leader"), slices.Concat(identified, forged, hops)},
		"if given":                      {a.asking("leader", tls.VerifyClientCertIfGiven), slices.Concat(callers, identified, forged, hops, unverified)},
		"if given, and a function":      {a.mutual("leader"), slices.Concat(callers, identified, forged, hops, anonymous)},
		"in plain text":                 {func(*Config) {}, slices.Concat(callers, unverified)},
		"in plain text, and a function": {func(cfg *Config) { cfg.VerifyHop = NodeCertificate }, slices.Concat(callers, anonymous)},
	} {
		t.Run(name, func(t *testing.T) {
			var w callRecorder
			leader := newNode(t, "leader", tc.secure, w.watches)
			leader.leads(7, w.script("handler"))
			for i, row := range tc.rows {
				from := leader
				if leader.conn == nil {
					from = a.from(leader, row.from...)
				}
				for way, send := range sending(from) {
					ctx := metadata.AppendToOutgoingContext(etcdtest.Context(t), slices.Concat(row.said...)...)
					var err error
					saw := w.saw(func() { err = send(ctx) })
					require.Equal(t, row.want, status.Code(err), "row %d, %s: a forged hop is served, or a true one is not: %v", i, way, err)
					for _, saw := range saw {
						if row.want == ok {
							require.True(t, strings.HasSuffix(saw, ": "+row.who), "row %d, %s: %s: another caller, or hop, is believed than %s", i, way, saw, row.who)
						} else { // records of an interceptor that gRPC calls first
							require.Regexp(t, "^leader: (nobody|alice|other)$", saw, "row %d, %s: it is called for a forged hop, or believes it", i, way)
						}
					}
				}
			}
			require.Empty(t, w.keys, "an interceptor sees a forged hop")
		})
	}
}

// Row 52: Forwarded returns what was verified: with certificates the node that forwarded, in
// interceptors and handlers; in plain text, which verifies nothing, no node.
//
// The leader has the caller of a follower, by the certificate that the follower has verified, in
// interceptors and handlers, of unary calls and of streams; and no caller if the caller has shown
// no certificate. For a direct call it is the connection's, for local services as well.
func TestRow52ForwardedIsVerified(t *testing.T) {
	a := newAuthority(t)
	var w callRecorder
	leader, follower := a.pair(w.script("handler"), a.mutual, w.watches)
	for who, certificates := range map[string][]tls.Certificate{"alice": {a.Issue("alice")}, "bob": {a.Issue("bob")}, "nobody": nil} {
		for _, n := range []*node{leader, follower} {
			id, hop := n.cfg.Elector.NodeID, ""
			var want []string
			if n == follower {
				want, hop = []string{"follower: " + who, "follower, then: " + who}, " by follower in 7"
			}
			want = append(want, "leader: "+who+hop, "leader, then: "+who+hop, "handler: "+who+hop)
			from := a.from(n, certificates...)
			forged := metadata.AppendToOutgoingContext(etcdtest.Context(t), oddKey, callerKey, oddKey, "forged", callerKey, "forged")
			for range 2 { // before the method is known to be unary, and after
				require.Equal(t, want, w.saw(func() { _, _ = from.unary(forged, "") }), "unary, at the %s", id)
			}
			require.Equal(t, want, w.saw(func() { from.open(bidiMethod).closes() }), "a stream, at the %s", id)
			require.Equal(t, []string{id + ": " + who, id + ", then: " + who, "local: " + who}, w.saw(func() {
				require.NoError(t, sending(from)["local, unary"](etcdtest.Context(t)))
			}), "local")
		}
	}
	require.Empty(t, w.keys)
	_, ok := Caller(context.Background())
	require.False(t, ok, "where there is no call")

	leader, follower = pair(t, w.script("handler"), w.watches)
	for _, n := range []*node{leader, follower} {
		require.NotContains(t, fmt.Sprint(w.saw(func() { n.answers("") })), " by ", "nobody has verified it")
	}
	require.Empty(t, w.keys)

	// A certificate that a follower has received but not verified is not passed on.
	leader, _ = a.pair(w.script("handler"), a.mutual, w.watches)
	shown := newNode(t, "follower", a.mutual("follower"), func(cfg *Config) {
		cfg.Listeners[0].Credentials = credentials.NewTLS(a.Server(a.Issue("follower"), tls.RequestClientCert))
	})
	shown.follows(leader, 7)
	from := a.from(shown, newAuthority(t).Issue("root"))
	require.NotContains(t, fmt.Sprint(w.saw(func() { from.answers("") })), "root")
}

// Row 52: a certificate names a node by its whole name; a wildcard certificate names no node.
func TestRow52WildcardIsNoNode(t *testing.T) {
	a := newAuthority(t)
	asked := func(node string, names ...string) error {
		cert := a.Issue(names...).Leaf
		state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert}}}
		return NodeCertificate(grpcpeer.NewContext(t.Context(), &grpcpeer.Peer{AuthInfo: credentials.TLSInfo{State: state}}), node)
	}
	const wildcard = "*.nodes.test"
	for _, names := range [][]string{{"n1.nodes.test"}, {wildcard, "n1.nodes.test"}, {"N1.Nodes.test"}} {
		require.NoError(t, asked("n1.nodes.test", names...), "%v", names)
	}
	require.NoError(t, asked("10.0.0.1", "10.0.0.1"))
	err := asked("n1.nodes.test", wildcard)
	require.Error(t, err, "a wildcard is every node")
	require.ErrorContains(t, err, `the certificate of ["*.nodes.test"]`)
	require.Error(t, asked("*.nodes.test", wildcard))
}
