package curator

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// NodeCertificate is a Config.VerifyHop for mutual TLS. A hop is believed of whoever
// proved to be the node: with a certificate that the listener's credentials have verified
// (tls.RequireAndVerifyClientCert, or VerifyClientCertIfGiven where callers need none) and
// that is valid for the node's id, as a DNS name or an IP address. So nodes' ids must be
// such names, and the authority must give them to nodes alone. Safe for concurrent use.
func NodeCertificate(ctx context.Context, node string) error {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return errors.New("nobody is known to have sent it")
	}
	secured, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return errors.New("it came without TLS")
	}
	if len(secured.State.VerifiedChains) == 0 || len(secured.State.PeerCertificates) == 0 {
		return errors.New("it came without a certificate that was verified")
	}
	cert := secured.State.PeerCertificates[0]
	if cert.VerifyHostname(node) != nil {
		// Not the error itself: it has the name as it was sent.
		return fmt.Errorf("it came with the certificate of %q, %v", cert.DNSNames, cert.IPAddresses)
	}
	return nil
}

// vouched asks whether a call comes from the node that says it has forwarded it.
//
// Whoever claims a hop gains little: the call is served in the tenure it names or refused,
// and what the service sees of the caller is what the claim says. But a service, or an
// interceptor in front of the leader, may leave to the nodes what must be checked once.
func (f *front) vouched(ctx context.Context, h hop) error {
	if f.verifyHop == nil {
		return nil
	}
	err := f.verifyHop(ctx, h.from)
	if err == nil {
		return nil
	}
	if st, ok := status.FromError(err); ok {
		return st.Err()
	}
	return status.Error(codes.PermissionDenied, text(fmt.Sprintf("eldest: the call says that node %.64q has forwarded it: %v", h.from, err)))
}
