package curator

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

// vouching is credentials that remember that who was reached is not the leader. gRPC
// tells calls that the connection could not be made, and not why; but a leader that does
// not answer is worth waiting for, and one that is somebody else is not.
type vouching struct {
	credentials.TransportCredentials
	impostor *atomic.Bool
}

// ClientHandshake is the credentials' own.
func (v vouching) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := v.TransportCredentials.ClientHandshake(ctx, authority, conn)
	var wrong *tls.CertificateVerificationError
	v.impostor.Store(errors.As(err, &wrong))
	return secured, info, err
}

// Clone remembers in the same place.
func (v vouching) Clone() credentials.TransportCredentials {
	return vouching{v.TransportCredentials.Clone(), v.impostor}
}
