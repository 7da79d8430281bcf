package curator

import (
	"context"
	"crypto/x509"
	"sync"

	"google.golang.org/grpc/metadata"
)

// callerKey names, in the pairs of oddKey, the certificate of a forwarded call's caller, as
// DER. It is believed there and nowhere else: a node that knows nothing of it, in an older
// version, would pass on what a caller sends under the key itself, but writes those pairs
// itself, and never with a key like this one.
const callerKey = "eldest-caller-bin"

// Caller returns, for the context of an incoming call in an interceptor or a handler, the
// certificate of the caller: on a direct call the one that the connection's credentials have
// verified, on a forwarded call the one that the follower's have, if it is verified that the
// call comes from that follower (see Forwarded). ok is false where the caller has shown none,
// where it was not verified, or where nobody has verified the hop.
//
// The chain is not passed on, and the leader does not verify the certificate again. So every
// node must ask for certificates of the same authorities, and who has the key of one node can
// name any caller. The certificate is shared and must not be changed. Caller does not block;
// the first of a forwarded call parses the certificate.
func Caller(ctx context.Context) (cert *x509.Certificate, ok bool) {
	a := arrived(ctx)
	switch {
	case a.hop.token == 0:
		cert = certificate(ctx)
	case a.caller != nil:
		cert = a.caller()
	}
	return cert, cert != nil
}

// introduced returns the pair of oddKey that tells the leader who called, if that is known.
func introduced(ctx context.Context) []string {
	cert := certificate(ctx)
	if cert == nil {
		return nil
	}
	return []string{callerKey, string(cert.Raw)}
}

// introduction returns what the node that forwarded a call says of the caller: a function
// that parses it once, or nil if it says nothing. ctx has the metadata of the hop.
func introduction(ctx context.Context) func() *x509.Certificate {
	for pairs := metadata.ValueFromIncomingContext(ctx, oddKey); len(pairs) >= 2; pairs = pairs[2:] {
		if pairs[0] != callerKey {
			continue
		}
		return sync.OnceValue(func() *x509.Certificate {
			cert, err := x509.ParseCertificate([]byte(pairs[1]))
			if err != nil {
				return nil // not what that node's crypto/tls has verified
			}
			return cert
		})
	}
	return nil
}
