package resolver_test

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcresolver "google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/resolver"
)

// authority makes servers and clients use its certificates.
type authority struct{ *etcdtest.Authority }

func newAuthority(t testing.TB) authority {
	t.Helper()
	return authority{etcdtest.NewAuthority(t)}
}

// server returns the credentials of a server with certain names.
func (a authority) server(names ...string) grpc.ServerOption {
	own := a.Issue(names...)
	return grpc.Creds(credentials.NewServerTLSFromCert(&own))
}

// client returns the credentials of a client that trusts the authority.
func (a authority) client() grpc.DialOption {
	return grpc.WithTransportCredentials(credentials.NewTLS(a.Client()))
}

// Row 50, the client's side: nodes share a certificate's name, which is that of the target or one
// with which the client is configured; or each node has its own name, and then a server that is not
// the node that leads is refused.
func TestCertificates(t *testing.T) {
	t.Parallel()
	trusted, stranger := newAuthority(t), newAuthority(t)
	own := func(leader identity.Identity) string { return leader.NodeID + ".test" }
	for name, tc := range map[string]struct {
		server     grpc.ServerOption
		options    []grpc.DialOption
		serverName func(identity.Identity) string
		refused    bool
	}{
		"the election's name":        {server: trusted.server("reports.test")},
		"an agreed name":             {server: trusted.server("shared.test"), options: []grpc.DialOption{grpc.WithAuthority("shared.test")}},
		"the node's own":             {server: trusted.server("n1.test", "127.0.0.1"), serverName: own},
		"another node's":             {server: trusted.server("n2.test", "127.0.0.1"), serverName: own, refused: true},
		"not the election's name":    {server: trusted.server("n1.test", "127.0.0.1"), refused: true},
		"a stranger's certificate":   {server: stranger.server("reports.test"), refused: true},
		"a stranger's, with my name": {server: stranger.server("n1.test", "127.0.0.1"), serverName: own, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			const election = "reports.test"
			n := newNode(t, "n1", tc.server)
			n.knows(election, n, 1)
			q := newQueue(t, etcdtest.Shared(t))
			q.election = election
			q.leader(1, n)
			nodes, err := resolver.FromNodes(resolver.NodesConfig{Addresses: []string{n.address}, ServerName: tc.serverName, Timeout: never})
			require.NoError(t, err)
			etcd := fromEtcd(t, q.admin, func(cfg *resolver.EtcdConfig) { cfg.ServerName = tc.serverName })
			for _, builder := range []grpcresolver.Builder{nodes, etcd} {
				conn := dial(t, election, builder, append(tc.options, trusted.client())...)
				if tc.refused {
					_, err := call(etcdtest.Context(t), conn)
					require.Equal(t, codes.Unavailable, status.Code(err))
					require.ErrorContains(t, err, "certificate")
					continue
				}
				reaches(t, conn, n)
			}
			q.nobody()
		})
	}
}

// If there are DialOptions, nodes are dialled with these alone.
func TestNodesDialOptions(t *testing.T) {
	a := newAuthority(t)
	election := etcdtest.Election(t)
	asked, leader := newNode(t, "asked", a.server("127.0.0.1")), newNode(t, "leader")
	asked.knows(election, leader, 1)
	conn := dial(t, election, fromNodes(t, resolver.NodesConfig{DialOptions: []grpc.DialOption{a.client()}}, asked))
	reaches(t, conn, leader)
}

// Credentials may have a name of their own. Queries use it, also with a ServerName, and for learned
// nodes.
//
// Fails if gRPC refuses the connection because it has two names.
func TestCredentialsWithAName(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	start := func(id string) *node { return newNode(t, id, a.server("shared.test", id+".test")) }
	shared := grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: a.Client().RootCAs, ServerName: "shared.test", MinVersion: tls.VersionTLS13}))
	for name, tc := range map[string]struct {
		client  grpc.DialOption
		options []grpc.DialOption
	}{
		"the client's": {client: shared}, "of the queries": {a.client(), []grpc.DialOption{shared}},
	} {
		t.Run(name, func(t *testing.T) {
			election := etcdtest.Election(t)
			first, second, third := start("first"), start("second"), start("third")
			first.knows(election, second, 1)
			second.knows(election, third, 2)
			conn := dial(t, election, fromNodes(t, resolver.NodesConfig{
				DialOptions: tc.options, ServerName: func(leader identity.Identity) string { return leader.NodeID + ".test" },
			}, first), tc.client)
			reaches(t, conn, second)
			first.server.Stop()
			reaches(t, conn, third)
		})
	}
}

// A node of the config that led is also queried with the name that its identity had: its address need
// not be a name of its certificate.
//
// Fails if nodes of the config are only queried with the names of their addresses.
func TestCertificateOfAConfiguredNode(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	election := etcdtest.Election(t)
	first, second, third := newNode(t, "first", a.server("127.0.0.1")), newNode(t, "second", a.server("second.test")), newNode(t, "third", a.server("third.test"))
	first.knows(election, second, 1)
	second.knows(election, third, 2)
	conn := dial(t, election, fromNodes(t, resolver.NodesConfig{
		ServerName: func(leader identity.Identity) string { return leader.NodeID + ".test" },
	}, first, second), a.client())
	reaches(t, conn, second)
	first.server.Stop()
	reaches(t, conn, third)
}
