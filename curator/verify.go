package curator

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
)

// Forwarded returns, for the context of an incoming call in an interceptor or a handler, which node
// has forwarded the call and for which tenure. ok is false if no node has, and if this was not
// verified: Config.VerifyHop is not set and the connection has no verified certificate. Forwarded
// does not block.
func Forwarded(ctx context.Context) (node string, token eldest.Token, ok bool) {
	h := arrived(ctx).hop
	if !h.verified {
		return "", 0, false
	}
	return h.from, h.token, true
}

// Caller returns, for the context of an incoming call in an interceptor or a handler, the
// certificate of the caller. For a direct call it is the one that the connection's credentials have
// verified. For a forwarded call it is the one that the follower's credentials have verified, if it
// is verified that the call comes from that follower (see Forwarded). ok is false if the caller has
// shown none, if it was not verified, or if the hop was not verified.
//
// The chain is not passed on, and the leader does not verify the certificate again. So every node
// must request certificates of the same authorities, and the owner of one node's key can name any
// caller. The certificate is shared and must not be changed. Caller does not block; its first call
// for a forwarded call parses the certificate.
func Caller(ctx context.Context) (cert *x509.Certificate, ok bool) {
	h := arrived(ctx).hop
	switch {
	case h.token == 0:
		cert = certificate(ctx)
	case h.caller != nil:
		cert = h.caller()
	}
	return cert, cert != nil
}

// NodeCertificate is a Config.VerifyHop for mutual TLS. It accepts a hop if the sender has proved
// to be the node: with a certificate that the listener's credentials have verified
// (tls.RequireAndVerifyClientCert, or VerifyClientCertIfGiven if callers need none) and that names
// the node's ID, as a DNS name or an IP address. So the IDs of nodes must be such names, and the
// authority must issue them only to nodes. A wildcard names no node: the owner of one certificate
// for all nodes, or for a domain, could claim to be any of them. NodeCertificate does not block and
// is safe for concurrent use.
func NodeCertificate(ctx context.Context, node string) error {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return errors.New("its sender is unknown")
	}
	if _, ok := p.AuthInfo.(credentials.TLSInfo); !ok {
		return errors.New("it was sent without TLS")
	}
	cert := certificate(ctx)
	if cert == nil {
		return errors.New("it was sent without a verified certificate")
	}
	exact := *cert
	exact.DNSNames = slices.DeleteFunc(slices.Clone(cert.DNSNames), func(name string) bool { return strings.HasPrefix(name, "*") })
	if exact.VerifyHostname(node) != nil {
		// The error of VerifyHostname is left out, because it has the name as it was sent.
		return fmt.Errorf("it was sent with the certificate of %q, %v", cert.DNSNames, cert.IPAddresses)
	}
	return nil
}

// certificate returns the certificate of the sender of a call, if it was verified, else nil.
func certificate(ctx context.Context) *x509.Certificate {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return nil
	}
	secured, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(secured.State.VerifiedChains) == 0 || len(secured.State.PeerCertificates) == 0 {
		return nil
	}
	return secured.State.PeerCertificates[0]
}

// verify checks that a call comes from the node that its hop names, with Config.VerifyHop if it is
// set. Otherwise a sender that has shown a certificate must have shown the node's, and on
// connections without certificates nothing can be verified. The error is the answer to a call that
// is refused.
//
// A forged hop gains little: the call is served in the tenure it names or refused, and what the
// service sees of the caller is what the hop contains. But a service, or an interceptor in front of
// the leader, may rely on the nodes for what must be checked once.
func (h *hop) verify(ctx context.Context, by func(ctx context.Context, node string) error) error {
	if by == nil {
		if certificate(ctx) == nil {
			return nil
		}
		by = NodeCertificate
	}
	err := by(ctx, h.from)
	if h.verified = err == nil; h.verified {
		return nil
	}
	if st, ok := status.FromError(err); ok {
		return st.Err()
	}
	return status.Error(codes.PermissionDenied, text(fmt.Sprintf("eldest: the call claims to have been forwarded by node %.64q: %v", h.from, err)))
}

// arrival is what is known of an incoming call before any interceptor is called. The zero arrival
// means that the call comes from a caller.
type arrival struct {
	hop     hop
	refused error // if set, the answer: the call goes no further
}

type arrivalKey struct{}

func arrived(ctx context.Context) arrival {
	a, _ := ctx.Value(arrivalKey{}).(arrival)
	return a
}

// hopReader reads the hop of each call that comes to the node, to any service, and removes it from
// the metadata. It is a stats handler: gRPC calls these before any interceptor, also before one
// that the user has put first, and they may change the context.
type hopReader struct {
	verify func(ctx context.Context, node string) error
}

// options returns the options that install the hopReader on a server. They come before the user's.
func (e hopReader) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.StatsHandler(e),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if err := arrived(ctx).refused; err != nil {
				return nil, err
			}
			return handle(ctx, in)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if err := arrived(stream.Context()).refused; err != nil {
				return err
			}
			return handle(srv, stream)
		}),
	}
}

// TagRPC is called once for each call; see stats.Handler. It blocks as long as
// Config.VerifyHop does.
func (e hopReader) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	var a arrival
	if a.hop, a.refused = hopOf(ctx); a.hop.token > 0 {
		a.refused = a.hop.verify(ctx, e.verify)
	}
	if a.hop.verified {
		a.hop.caller = passedCaller(ctx)
	}
	ctx = fromCaller(ctx, a.hop)
	if a.hop.token == 0 && a.refused == nil {
		return ctx
	}
	return context.WithValue(ctx, arrivalKey{}, a)
}

// HandleRPC does nothing; see stats.Handler.
func (hopReader) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn changes nothing; see stats.Handler.
func (hopReader) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing; see stats.Handler.
func (hopReader) HandleConn(context.Context, stats.ConnStats) {}
