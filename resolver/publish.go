package resolver

import (
	"cmp"

	"google.golang.org/grpc/attributes"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// publisher updates one client connection with the leader's address. It belongs to one goroutine.
//
// Invariant: published is empty, or the address of the newest known tenure that had one.
type publisher struct {
	election   string
	conn       grpcresolver.ClientConn
	serverName func(identity.Identity) string
	endpoints  map[string]string // see NodesConfig.Endpoints

	newest    eldest.Token
	published place
}

// place is the address of a tenure's leader.
type place struct {
	token               eldest.Token
	address, serverName string
}

// tenureKey is the key of the token in an address's attributes. gRPC treats addresses with
// different attributes as different ones. So each tenure has a connection of its own, made at once:
// otherwise a node that crashed, came back and leads again would be out of reach until gRPC's
// back-off ends, for up to two minutes.
type tenureKey struct{}

// leads publishes a leader. It reports whether the token is at least as new as the newest one
// known.
func (p *publisher) leads(token eldest.Token, id identity.Identity) bool {
	if token < p.newest {
		return false
	}
	p.newest = token
	at := place{token: token, address: cmp.Or(p.endpoints[id.NodeID], id.Address)}
	if at.address == "" {
		p.unknown(errNoAddress)
		return true
	}
	if p.serverName != nil {
		at.serverName = p.serverName(id)
	}
	if at == p.published {
		return true
	}
	p.published = at
	// An error means that the balancer does not accept a single address. It cannot be handled here,
	// and gRPC reports it to the callers.
	_ = p.conn.UpdateState(grpcresolver.State{Addresses: []grpcresolver.Address{{
		Addr: at.address, ServerName: at.serverName, Attributes: attributes.New(tenureKey{}, token),
	}}})
	return true
}

// unknown reports that there is no leader, or that the leader is unknown.
func (p *publisher) unknown(reason error) {
	if p.published.address == "" {
		p.conn.ReportError(p.failed(reason))
	}
}

func (p *publisher) failed(err error) error {
	return &eldest.OpError{Op: "resolve", Election: p.election, Err: rpcerr.Opaque(err)}
}

// checkEndpoints refuses endpoints that cannot be used. config is the name of their config.
func checkEndpoints(config string, endpoints map[string]string) error {
	for node, endpoint := range endpoints {
		switch {
		case node == "":
			return invalid("%s.Endpoints has an endpoint %q without a node ID", config, endpoint)
		case endpoint == "":
			return invalid("%s.Endpoints has an empty endpoint for node %q", config, node)
		}
	}
	return nil
}
