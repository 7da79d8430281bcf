package curator

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// authority signs certificates for nodes, by their IDs.
type authority struct {
	*etcdtest.Authority
	t testing.TB
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	return &authority{etcdtest.NewAuthority(t), t}
}

// as are the credentials of a client that expects the server id.
func (a *authority) as(id string, own ...tls.Certificate) credentials.TransportCredentials {
	cfg := a.Client(own...)
	cfg.ServerName = id
	return credentials.NewTLS(cfg)
}

// secure gives a node the certificate of id, and makes it require certificates of leaders and
// callers.
func (a *authority) secure(id string) func(*Config) {
	return a.asking(id, tls.RequireAndVerifyClientCert)
}

// mutual gives a node the certificate of id, and makes it request certificates of callers. It
// accepts hops only from nodes.
func (a *authority) mutual(id string) func(*Config) {
	secure := a.asking(id, tls.VerifyClientCertIfGiven)
	return func(cfg *Config) {
		secure(cfg)
		cfg.VerifyHop = NodeCertificate
	}
}

func (a *authority) asking(id string, callers tls.ClientAuthType) func(*Config) {
	own := a.Issue(id)
	return func(cfg *Config) {
		cfg.Listeners[0].Credentials = credentials.NewTLS(a.Server(own, callers))
		cfg.PeerCredentials = func(l elector.Leader) credentials.TransportCredentials { return a.as(l.NodeID, own) }
	}
}

// pair is a leader and a follower with TLS.
func (a *authority) pair(s *script, secure func(id string) func(*Config), change ...func(*Config)) (leader, follower *node) {
	a.t.Helper()
	leader = newNode(a.t, "leader", append([]func(*Config){secure("leader")}, change...)...)
	follower = newNode(a.t, "follower", append([]func(*Config){secure("follower")}, change...)...)
	leader.leads(7, s)
	follower.follows(leader, 7)
	return leader, follower
}

// from is a node, called with certificates or without.
func (a *authority) from(n *node, certificates ...tls.Certificate) *node {
	a.t.Helper()
	name := n.cfg.Elector.NodeID
	return &node{t: n.t, address: n.address, conn: dialTo(a.t, n.address, grpc.WithTransportCredentials(a.as(name, certificates...)))}
}

// callOf is a call of a node's script with a caller's certificate.
func (a *authority) callOf(n *node) error { return a.from(n, a.Issue("caller")).call("") }

// Row 50: TLS with own certificates, for the listener and for the hop. A different server that
// listens at the leader's address receives no calls.
func TestRequirement50TLSBetweenNodes(t *testing.T) {
	a := newAuthority(t)
	leader, follower := a.pair(&script{unary: func(ctx context.Context, in *message) (*message, error) {
		p, _ := grpcpeer.FromContext(ctx)
		if _, ok := p.AuthInfo.(credentials.TLSInfo); !ok {
			return nil, status.Error(codes.Unauthenticated, "who is it?")
		}
		return in, nil
	}}, a.secure)
	require.NoError(t, a.callOf(leader))
	require.NoError(t, a.callOf(follower))
	plain := newNode(t, "plain", waits(10*time.Millisecond)) // a connection in plain text fails
	plain.follows(leader, 7)
	plain.untouched("")

	for token, secured := range []func(string) func(*Config){a.secure, newAuthority(t).secure} { // a certificate of another node; a certificate of an unknown authority
		impostor := newNode(t, "leader", secured(map[int]string{0: "impostor", 1: "leader"}[token]))
		impostor.leads(eldest.Token(8+token), echoing)
		follower.follows(impostor, eldest.Token(8+token))
		begun := time.Now()
		err := a.callOf(follower)
		require.Less(t, time.Since(begun), DefaultWait, "nobody waits for an impostor to become the leader")
		require.True(t, requireRetry(t, err).GetNothingApplied())
		require.ErrorContains(t, err, "certificate")
		require.Zero(t, impostor.calls.Load())
	}
}

// Config.PeerCredentials may take its time, and delays only the call that needs the credentials;
// and there may be none.
func TestPeerCredentials(t *testing.T) {
	asked, release := make(chan struct{}, 2), make(chan struct{}) // two connections
	leader, follower := newNode(t, "leader"), newNode(t, "follower", func(cfg *Config) {
		cfg.PeerCredentials = func(l elector.Leader) credentials.TransportCredentials {
			if l.Token == 8 {
				return nil
			}
			asked <- struct{}{}
			<-release
			return insecure.NewCredentials()
		}
	})
	leader.leads(7, echoing)
	follower.follows(leader, 7)
	slow := follower.ask("")
	etcdtest.Take(t, asked, "the question")
	follower.follows(leader, 8)
	follower.untouched("PeerCredentials returned no credentials")
	follower.leads(9, echoing)
	follower.answers("")
	close(release)
	require.NoError(t, etcdtest.Take(t, slow, "an answer here: that leader leads no more"))
}

// If the listener uses TLS, and there are no credentials for the hop, no call is sent in plain
// text, with any other options: New refuses that, and no leader would be dialled. Credentials in
// PeerOptions are used if there is no PeerCredentials.
func TestNoPlainTextBesideTLS(t *testing.T) {
	unrelated := grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1 << 20))
	secure := credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13})
	cfg := Config{
		Listeners: []Listener{{listen(t), secure}},
		Services:  func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error { return nil },
	}
	for _, options := range [][]grpc.DialOption{nil, {unrelated}} {
		require.Error(t, secured(options), "an option that says nothing of it")
		cfg.PeerOptions = options
		_, err := cfg.withDefaults()
		require.ErrorIs(t, err, eldest.ErrInvalid)
		require.ErrorContains(t, err, "plain text")
		_, err = (&Curator{cfg: cfg}).dial(elector.Leader{Identity: identity.Identity{Address: "127.0.0.1:1"}})
		require.Error(t, err, "a connection in plain text")
	}
	cfg.PeerOptions = []grpc.DialOption{unrelated, grpc.WithTransportCredentials(insecure.NewCredentials())}
	_, err := cfg.withDefaults()
	require.NoError(t, err, "it is meant")

	leader, follower := newNode(t, "leader"), newNode(t, "follower", waits(20*time.Millisecond), func(cfg *Config) {
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithTransportCredentials(secure))
	})
	leader.leads(7, echoing)
	follower.follows(leader, 7)
	requireRetry(t, follower.call("secret"))
	require.Zero(t, leader.calls.Load(), "sent in plain text")
}

// Nodes that must use TLS send nothing in plain text to a leader without TLS: not a byte of a
// request leaves.
func TestNoPlainTextWhereTLSIsConfigured(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	const secret = "what nobody else may read"
	follower := newNode(t, "follower", a.mutual("follower"), waits(300*time.Millisecond))
	tap := listen(t)
	got := make(chan []byte, 100)
	go func() {
		for {
			conn, err := tap.Accept()
			if err != nil {
				return
			}
			heard := make([]byte, 64<<10)
			n, _ := conn.Read(heard) // no answer is needed: the client sends first
			got <- heard[:n]
			_ = conn.Close()
		}
	}()
	follower.followsAt(tap.Addr().String())
	for range 2 { // before the method is known to be unary, and after
		_, err := a.from(follower).unary(metadata.AppendToOutgoingContext(etcdtest.Context(t), "password", secret), secret)
		require.True(t, requireRetry(t, err).GetNothingApplied())
		follower.router.Now().Peer.unary.Store(unaryMethod, nil)
	}
	heard := etcdtest.Take(t, got, "the attempt")
	require.NotEmpty(t, heard)
	require.Equal(t, byte(22), heard[0], "a TLS handshake") // before it is done nothing else is sent
	require.NotContains(t, string(heard), secret)
}

// On one connection a certificate is sent in full once: HTTP/2 compresses headers that repeat.
func TestCallerCostsLittle(t *testing.T) {
	a := newAuthority(t)
	var way network
	caller := a.Issue("caller")
	_, follower := a.pair(echoing, a.mutual, way.join)
	from := a.from(follower, caller)
	const turns = 50
	var first int64
	for i := range 20 + turns {
		if i == 20 {
			first = way.sent.Load()
		}
		from.answers("")
	}
	each, size := (way.sent.Load()-first)/turns, len(caller.Certificate[0])
	t.Logf("a certificate of %d bytes; %d bytes for each call", size, each)
	require.Less(t, each, int64(size)*2/3, "the certificate crosses with each call")
}

// The certificate counts as metadata of the hop: a large one is refused by the limit as other
// metadata is, and an ordinary one leaves enough for the caller's metadata.
func TestCallerWithinMaxMetadata(t *testing.T) {
	a := newAuthority(t)
	leader, follower := a.pair(echoing, a.mutual, func(cfg *Config) { cfg.MaxMetadata = 8 << 10 })
	names := []string{"large"}
	for i := range 300 {
		names = append(names, fmt.Sprintf("name-%d.of.a.large.certificate", i))
	}
	large, ordinary := a.Issue(names...), a.Issue("ordinary")
	for range 2 {
		much := metadata.AppendToOutgoingContext(etcdtest.Context(t), "much", strings.Repeat("x", 6<<10))
		for _, n := range []*node{leader, follower} {
			_, err := a.from(n, ordinary).unary(much, "")
			require.NoError(t, err)
		}
		require.NoError(t, a.from(leader, large).call(""))
		requireCode(t, codes.Internal, a.from(follower, large).call(""))
	}
}
