package curator

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// NodeCertificate is a Config.VerifyHop for mutual TLS. A hop is believed of whoever
// proved to be the node: with a certificate that the listener's credentials have verified
// (tls.RequireAndVerifyClientCert, or VerifyClientCertIfGiven where callers need none) and
// that names the node's id, as a DNS name or an IP address. So nodes' ids must be
// such names, and the authority must give them to nodes alone. A wildcard names no node:
// whoever has one certificate for all nodes, or for a domain, could claim to be any of them.
// NodeCertificate does not block and is safe for concurrent use.
func NodeCertificate(ctx context.Context, node string) error {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return errors.New("nobody is known to have sent it")
	}
	if _, ok := p.AuthInfo.(credentials.TLSInfo); !ok {
		return errors.New("it came without TLS")
	}
	cert := certificate(ctx)
	if cert == nil {
		return errors.New("it came without a certificate that was verified")
	}
	exact := *cert
	exact.DNSNames = slices.DeleteFunc(slices.Clone(cert.DNSNames), func(name string) bool { return strings.HasPrefix(name, "*") })
	if exact.VerifyHostname(node) != nil {
		// Not the error itself: it has the name as it was sent.
		return fmt.Errorf("it came with the certificate of %q, %v", cert.DNSNames, cert.IPAddresses)
	}
	return nil
}

// certificate returns the certificate of whoever sent a call, if it was verified, else nil.
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

// vouched asks whether a call comes from the node that says it has forwarded it. It returns
// whether this was verified, or the answer to a call that goes no further. Without a
// function of the user's, whoever has shown a certificate must have shown a node's; of
// connections without certificates nothing can be verified.
//
// Whoever claims a hop gains little: the call is served in the tenure it names or refused,
// and what the service sees of the caller is what the claim says. But a service, or an
// interceptor in front of the leader, may leave to the nodes what must be checked once.
func vouched(ctx context.Context, h hop, verify func(ctx context.Context, node string) error) (bool, error) {
	if verify == nil {
		if certificate(ctx) == nil {
			return false, nil
		}
		verify = NodeCertificate
	}
	err := verify(ctx, h.from)
	if err == nil {
		return true, nil
	}
	if st, ok := status.FromError(err); ok {
		return false, st.Err()
	}
	return false, status.Error(codes.PermissionDenied, text(fmt.Sprintf("eldest: the call says that node %.64q has forwarded it: %v", h.from, err)))
}
