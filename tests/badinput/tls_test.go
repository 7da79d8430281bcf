package badinput

import (
	"context"
	"crypto/tls"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// authority issues certificates to nodes, by their IDs.
type authority struct{ *etcdtest.Authority }

// client returns the credentials of a client that expects a server of the given name.
func (a authority) client(own tls.Certificate, whom string) credentials.TransportCredentials {
	cfg := a.Client(own)
	cfg.ServerName = whom
	return credentials.NewTLS(cfg)
}

// node makes a curator present a certificate, and require certificates of its peers; hops are
// accepted from nodes only.
func (a authority) node(own tls.Certificate) func(*curator.Config) {
	return func(cfg *curator.Config) {
		cfg.Listeners[0].Credentials = credentials.NewTLS(a.Server(own, tls.RequireAndVerifyClientCert))
		cfg.PeerCredentials = func(l elector.Leader) credentials.TransportCredentials { return a.client(own, l.NodeID) }
		cfg.VerifyHop = curator.NodeCertificate
	}
}

// tlsSection: nodes with certificates, and others.
func tlsSection(t *testing.T) section {
	st := newStage(t, etcdtest.Shared(t), "orders")
	always := elector.Always(elector.Client(st.Admin))
	a := authority{etcdtest.NewAuthority(t)}
	caller := a.Issue("caller")
	var all []*instance
	start := func(kind, id string, certificate tls.Certificate, source elector.Source) *instance {
		st.alias(st.Election+"-"+kind, "orders")
		i := st.serve(id, source, a.node(certificate), func(cfg *curator.Config) { cfg.Elector.Election = st.Election + "-" + kind })
		st.connect(i, grpc.WithTransportCredentials(a.client(caller, id)))
		all = append(all, i)
		return i
	}
	pair := func(kind string, leaders tls.Certificate) (leader, follower *instance) {
		leader = start(kind, "leader", leaders, always)
		leader.becomes(st, elector.Leading)
		follower = start(kind, "follower", a.Issue("follower"), always)
		follower.becomes(st, elector.Following)
		return leader, follower
	}
	leader, follower := pair("good", a.Issue("leader"))
	_, misled := pair("impostor", a.Issue("impostor"))
	_, strange := pair("stranger", etcdtest.NewAuthority(t).Issue("leader"))

	// A leader without TLS: its value has the address of a node that does not use TLS.
	open := st.serve("open", never)
	st.pretends(st.Election+"-plain", says(t, "leader", open.address))
	plain := start("plain", "follower", a.Issue("follower"), always)
	plain.becomes(st, elector.Following)

	s := st.section("curator: TLS", "Each node's certificate is for its node ID, and it requires the same of the leader to which it forwards. The count is how often the handler was called.")
	s.left = "a follower with a good certificate still reaches its leader"
	s.revision, s.counted = nil, "handled"
	s.sent = func() (n int) {
		for _, i := range append(all, open) {
			n += int(i.handled.Load())
		}
		return n
	}
	s.lives = func(t *testing.T) {
		require.NoError(t, etcdtest.Err(follower.Put(st.Ctx, &kvpb.PutRequest{})))
	}
	refused := func(tried string, to *instance, code codes.Code, says string, md ...string) {
		s.rows = append(s.rows, row{tried: tried, want: []error{coded(code)}, says: []string{says}, try: func() error {
			ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(st.Ctx, md...), etcdtest.Patience)
			defer cancel()
			err := second(to.Put(ctx, &kvpb.PutRequest{}))
			if code == codes.Unavailable {
				untouched(t, err, to.election)
			}
			return answer(err)
		}})
	}
	refused("the leader's certificate is another node's", misled, codes.Unavailable, "certificate")
	refused("the leader's certificate is from an unknown authority", strange, codes.Unavailable, "certificate")
	refused("the leader speaks no TLS", plain, codes.Unavailable, "can be retried")
	_, token, ok := leader.Status().Own()
	require.True(t, ok)
	tenure := strconv.FormatInt(int64(token), 10)
	refused("a hop, made by a caller, with the token of the tenure", leader, codes.PermissionDenied, "follower", "eldest-hop", tenure, "eldest-from", "follower")
	return s
}
