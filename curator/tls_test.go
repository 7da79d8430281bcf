package curator

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// authority signs certificates for nodes, by their ids.
type authority struct {
	*etcdtest.Authority
	t testing.TB
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	return &authority{etcdtest.NewAuthority(t), t}
}

// node returns the certificate of a node: for its id, as a server and as a client.
func (a *authority) node(id string) tls.Certificate { return a.Issue(id) }

// as are the credentials of a client that wants to meet id.
func (a *authority) as(id string, own ...tls.Certificate) credentials.TransportCredentials {
	cfg := a.Client(own...)
	cfg.ServerName = id
	return credentials.NewTLS(cfg)
}

// secure has a node prove that it is id, and ask the same of leaders and of callers.
func (a *authority) secure(id string) func(*Config) {
	own := a.node(id)
	return func(cfg *Config) {
		cfg.ServerCredentials = credentials.NewTLS(a.Server(own, tls.RequireAndVerifyClientCert))
		cfg.PeerCredentials = func(l elector.Leader) credentials.TransportCredentials { return a.as(l.NodeID, own) }
	}
}

// caller connects a caller that is somebody to a node.
func (a *authority) caller(n *node, id string) {
	a.t.Helper()
	n.conn = dialTo(a.t, n.address, grpc.WithTransportCredentials(a.as(id, a.node("caller"))))
}

// Row 50: TLS with certificates of one's own, for the listener and for the hop.
func TestRequirement50TLSBetweenNodes(t *testing.T) {
	a := newAuthority(t)
	leader, follower := newNode(t, "leader", a.secure("leader")), newNode(t, "follower", a.secure("follower"))
	leader.leads(7, &script{unary: func(ctx context.Context, in *message) (*message, error) {
		p, _ := grpcpeer.FromContext(ctx)
		if _, ok := p.AuthInfo.(credentials.TLSInfo); !ok {
			return nil, status.Error(codes.Unauthenticated, "who is it?")
		}
		return in, nil
	}})
	follower.front.router.follow(leader.as(7))
	a.caller(leader, "leader")
	a.caller(follower, "follower")
	for _, n := range []*node{leader, follower} {
		out, err := n.unary(etcdtest.Context(t), "hello")
		require.NoError(t, err)
		require.Equal(t, "hello", out)
	}

	// Not over a connection in plain text.
	plain := newNode(t, "plain", func(cfg *Config) { cfg.Wait = 10 * time.Millisecond })
	plain.front.router.follow(leader.as(7))
	_, err := plain.unary(etcdtest.Context(t), "")
	require.True(t, requireRetry(t, err).GetNothingApplied())
}

// Row 50: whoever listens at the leader's address and is somebody else is not asked.
func TestRequirement50LeaderWithAnotherNodesCertificate(t *testing.T) {
	a := newAuthority(t)
	leader, follower := newNode(t, "leader", a.secure("impostor")), newNode(t, "follower", a.secure("follower"))
	leader.leads(7, &script{unary: echo})
	follower.front.router.follow(leader.as(7))
	a.caller(follower, "follower")
	begun := time.Now()
	_, err := follower.unary(etcdtest.Context(t), "")
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Less(t, time.Since(begun), DefaultWait, "nobody waits for an impostor to become the leader")
	require.True(t, requireRetry(t, err).GetNothingApplied())
	require.ErrorContains(t, err, "certificate")
	require.Zero(t, leader.calls.Load())

	// A certificate of nobody that is known: neither.
	stranger := newNode(t, "leader", newAuthority(t).secure("leader"))
	stranger.leads(8, &script{unary: echo})
	follower.front.router.follow(stranger.as(8))
	_, err = follower.unary(etcdtest.Context(t), "")
	require.ErrorContains(t, err, "certificate")
	requireRetry(t, err)
	require.Zero(t, stranger.calls.Load())
}

// Credentials are the user's to find: that may take its time, and hold up nobody but who
// wants them; and there may be none.
func TestPeerCredentials(t *testing.T) {
	asked, release := make(chan struct{}, 2), make(chan struct{}) // two connections
	s := &script{unary: echo}
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
	leader.leads(7, s)
	follower.front.router.follow(leader.as(7))
	slow := asking(func() error { _, err := follower.unary(etcdtest.Context(t), ""); return err })
	etcdtest.Take(t, asked, "the question")
	follower.front.router.follow(leader.as(8))
	_, err := follower.unary(etcdtest.Context(t), "")
	require.True(t, requireRetry(t, err).GetNothingApplied())
	require.ErrorContains(t, err, "PeerCredentials has none")
	follower.leads(9, s)
	_, err = follower.unary(etcdtest.Context(t), "")
	require.NoError(t, err)
	close(release)
	require.NoError(t, etcdtest.Take(t, slow, "an answer here: that leader leads no more"))
}

// Where the listener speaks TLS, and nothing was said of the hop, no call leaves in plain text,
// whatever options there are beside: New refuses that, and nobody would be dialled.
//
// Broken by any option of a connection being taken for its credentials.
func TestNoPlainTextBesideTLS(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	unrelated := grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1 << 20))
	cfg := Config{
		Listener: listener, Services: func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error { return nil },
		ServerCredentials: credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13}),
	}
	for _, options := range [][]grpc.DialOption{nil, {unrelated}} {
		require.Error(t, secured(options), "an option that says nothing of it")
		cfg := cfg
		cfg.PeerOptions = options
		_, err := cfg.withDefaults()
		require.ErrorIs(t, err, eldest.ErrInvalid)
		require.ErrorContains(t, err, "plain text")

		_, err = dialer(cfg, &sync.WaitGroup{})(elector.Leader{Identity: identity.Identity{Address: "127.0.0.1:1"}})
		require.Error(t, err, "a connection in plain text")
	}
	meant := []grpc.DialOption{unrelated, grpc.WithTransportCredentials(insecure.NewCredentials())}
	require.NoError(t, secured(meant))
	cfg.PeerOptions = meant
	_, err = cfg.withDefaults()
	require.NoError(t, err)
}

// Credentials in PeerOptions hold where there is no PeerCredentials.
func TestCredentialsInPeerOptions(t *testing.T) {
	leader := newNode(t, "leader")
	leader.leads(7, &script{unary: echo})
	follower := newNode(t, "follower", func(cfg *Config) {
		cfg.Wait = 20 * time.Millisecond
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13})))
	})
	follower.front.router.follow(leader.as(7))
	_, err := follower.unary(etcdtest.Context(t), "secret")
	requireRetry(t, err)
	require.Zero(t, leader.calls.Load(), "sent in plain text")
}
