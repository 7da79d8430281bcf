package resolver

import (
	"context"
	"errors"

	"google.golang.org/grpc/attributes"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/identity"
)

// publisher tells one client connection where the leader is. It belongs to one
// goroutine.
//
// Invariant: what was published is empty, or the address of the newest tenure known
// that had one.
type publisher struct {
	election   string
	conn       grpcresolver.ClientConn
	serverName func(identity.Identity) string

	newest    eldest.Token
	published place
}

// place is where a tenure's leader is.
type place struct {
	token               eldest.Token
	address, serverName string
}

// tenureKey is the key of the token among an address's attributes. To gRPC addresses
// that differ there are different ones. So each tenure has a connection of its own,
// made at once: a node that died, came back and leads again would else be out of reach
// for as long as gRPC's back-off has grown to meanwhile, up to two minutes.
type tenureKey struct{}

// leads takes in that somebody leads. It reports whether that is as new as what is
// known already.
func (p *publisher) leads(token eldest.Token, id identity.Identity) bool {
	if token < p.newest {
		return false
	}
	p.newest = token
	if id.Address == "" {
		p.unknown(errNoAddress)
		return true
	}
	at := place{token: token, address: id.Address}
	if p.serverName != nil {
		at.serverName = p.serverName(id)
	}
	if at == p.published {
		return true
	}
	p.published = at
	// An error means that the balancer wants no single address; with that there is
	// nothing to be done here, and gRPC tells the callers.
	_ = p.conn.UpdateState(grpcresolver.State{Addresses: []grpcresolver.Address{{
		Addr: at.address, ServerName: at.serverName, Attributes: attributes.New(tenureKey{}, token),
	}}})
	return true
}

// unknown takes in that nobody leads, or that it is not known who.
func (p *publisher) unknown(reason error) {
	if p.published.address == "" {
		p.conn.ReportError(p.failed(reason))
	}
}

func (p *publisher) failed(err error) error {
	return &eldest.OpError{Op: "resolve", Election: p.election, Err: opaque{err}}
}

// opaque is an error of which gRPC sees no more than the text. In a reason that has a
// status of its own gRPC would find that of the call, and fail also those that wait.
type opaque struct{ reason error }

func (o opaque) Error() string { return o.reason.Error() }

// Is lets errors.Is find what is inside.
func (o opaque) Is(target error) bool { return errors.Is(o.reason, target) }

// following is a resolver that is one goroutine.
type following struct {
	stop context.CancelFunc
	done chan struct{}
}

// follow starts f, whose context ends with the resolver.
func follow(f func(ctx context.Context)) *following {
	ctx, stop := context.WithCancel(context.Background())
	r := &following{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		f(ctx)
	}()
	return r
}

// ResolveNow does nothing: news comes by itself.
func (r *following) ResolveNow(grpcresolver.ResolveNowOptions) {}

// Close ends the goroutine and waits for it.
func (r *following) Close() {
	r.stop()
	<-r.done
}
