package web

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// arrived is what a handler sees of the hop.
type arrived struct {
	node     string
	token    eldest.Token
	verified bool
	header   http.Header
}

func (a *arrived) handler(_ http.ResponseWriter, r *http.Request) {
	a.node, a.token, a.verified = Forwarded(r.Context())
	a.header = r.Header.Clone()
}

// A hop that was not verified is served in its tenure or refused, and handlers see nothing of it.
func TestForgedHopInPlainText(t *testing.T) {
	var saw arrived
	leader, follower, _ := pair(t, saw.handler)
	for n, header := range map[*node][]string{leader: {hopHeader, "7", fromHeader, "follower"}, follower: nil} {
		require.Equal(t, http.StatusOK, n.get(header...).StatusCode)
		require.False(t, saw.verified, "nobody has verified it")
		require.NotContains(t, saw.header, hopHeader)
		require.NotContains(t, saw.header, fromHeader)
	}
	calls := leader.calls.Load()
	leader.get(hopHeader, "6").refused(t, http.StatusServiceUnavailable, "")
	follower.get(hopHeader, "7").refused(t, http.StatusServiceUnavailable, "") // it is not forwarded again
	for _, bad := range [][]string{{hopHeader, "x"}, {hopHeader, "+7"}, {hopHeader, "-1"}, {hopHeader, "0"}, {hopHeader, ""}, {hopHeader, "7", hopHeader, "7"}, {hopHeader, "7", fromHeader, "%zz"}} {
		leader.get(bad...).refused(t, http.StatusBadRequest, "")
		follower.get(bad...).refused(t, http.StatusBadRequest, "")
	}
	require.Equal(t, calls, leader.calls.Load())

	// Headers that the caller declares to be of its own connection do not bypass this.
	require.Equal(t, http.StatusOK, follower.get("Connection", "Eldest-Hop, Eldest-From").StatusCode)
	require.Equal(t, calls+1, leader.calls.Load())

	strict := newNode(t, "strict", func(cfg *Config) { cfg.VerifyHop = NodeCertificate })
	strict.leads(7, hello)
	strict.get(hopHeader, "7", fromHeader, "follower").refused(t, http.StatusForbidden, "without TLS")
	require.Zero(t, strict.calls.Load())
}

// authority signs the certificates of nodes and callers.
type authority struct{ *etcdtest.Authority }

func (a authority) certificate(name string) tls.Certificate { return a.Issue(name, "127.0.0.1") }

// secure makes a node with a certificate, which it also shows to leaders. Its callers may show one.
func (a authority) secure(t testing.TB, id, named string, http2 bool) *node {
	t.Helper()
	cert := a.certificate(named)
	transport := newTransport()
	transport.TLSClientConfig = a.Client(cert)
	transport.ForceAttemptHTTP2 = http2
	n := newQuietNode(t, id, func(cfg *Config) {
		cfg.Transport = transport
		cfg.URL = func(l elector.Leader) (*url.URL, error) { return &url.URL{Scheme: "https", Host: l.Address}, nil }
	})
	n.server.EnableHTTP2 = http2
	n.server.TLS = a.Server(cert, tls.VerifyClientCertIfGiven)
	n.server.StartTLS()
	t.Cleanup(transport.CloseIdleConnections)
	return n
}

// as sends a request to the node with a certificate, or without.
func (a authority) as(n *node, certificates []tls.Certificate, header ...string) reply {
	n.t.Helper()
	transport := &http.Transport{TLSClientConfig: a.Client(certificates...)}
	defer transport.CloseIdleConnections()
	client := n.server.Client()
	defer func(before http.RoundTripper) { client.Transport = before }(client.Transport)
	client.Transport = transport
	return n.get(header...)
}

// With mutual TLS a hop is accepted from the node that its certificate names, and from no other
// client with a certificate. Over HTTP/2 the rules are the same.
func TestHopsOfNodesOnly(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		a := authority{etcdtest.NewAuthority(t)}
		var saw arrived
		leader, follower := a.secure(t, "leader", "leader", http2), a.secure(t, "follower", "follower", http2)
		leader.leads(7, saw.handler)
		follower.follows(leader, 7)
		require.Equal(t, http.StatusOK, a.as(follower, nil).StatusCode)
		require.Equal(t, arrived{"follower", 7, true, saw.header}, saw)
		require.Equal(t, "https", saw.header.Get("X-Forwarded-Proto"))

		calls := leader.calls.Load()
		forged := []string{hopHeader, "7", fromHeader, "follower"}
		for _, names := range []string{"other", "*.nodes", "caller"} {
			cert := []tls.Certificate{a.certificate(names)}
			a.as(leader, cert, forged...).refused(t, http.StatusForbidden, "certificate")
			a.as(follower, cert, forged...).refused(t, http.StatusForbidden, "certificate")
		}
		misnamed := a.secure(t, "follower", "somebody", http2)
		misnamed.follows(leader, 7)
		a.as(misnamed, nil).refused(t, http.StatusForbidden, "")
		require.Equal(t, calls, leader.calls.Load())

		// A client without a hop is a caller, with a certificate or without.
		require.Equal(t, http.StatusOK, a.as(leader, []tls.Certificate{a.certificate("caller")}).StatusCode)
		require.False(t, saw.verified)
		// If callers need no certificate, a hop without one is refused if VerifyHop is set.
		leader.cfg.VerifyHop = NodeCertificate
		a.as(leader, nil, forged...).refused(t, http.StatusForbidden, "")
		require.Equal(t, http.StatusOK, a.as(follower, nil).StatusCode)
		require.True(t, saw.verified)
	}
}
