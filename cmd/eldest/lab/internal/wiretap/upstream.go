package wiretap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/eldest-io/eldest/internal/rawframe"
)

// ErrInvalid is returned by Start for invalid endpoints.
var ErrInvalid = errors.New("invalid endpoints")

// members has etcd's addresses.
type members struct {
	addresses []resolver.Address
	creds     credentials.TransportCredentials
}

// newMembers parses endpoints as etcd's client does: host:port with a scheme or without, or
// unix:path. Either all are reached with TLS or none is.
func newMembers(endpoints []string, config *tls.Config) (*members, error) {
	if len(endpoints) == 0 {
		return nil, fmt.Errorf("%w: none given", ErrInvalid)
	}
	m := &members{creds: insecure.NewCredentials()}
	secure := 0
	for _, ep := range endpoints {
		scheme, rest, ok := strings.Cut(ep, "://")
		if !ok {
			scheme, rest = "", ep
			if path, unix := strings.CutPrefix(ep, "unix:"); unix {
				scheme, rest = "unix", path
			} else if path, unix := strings.CutPrefix(ep, "unixs:"); unix {
				scheme, rest = "unixs", path
			}
		}
		a := resolver.Address{Addr: strings.TrimSuffix(rest, "/")}
		switch scheme {
		case "unix", "unixs":
			a.Addr = "unix:" + rest
		default:
			host, _, err := net.SplitHostPort(a.Addr)
			if err != nil {
				return nil, fmt.Errorf("%w: %q: %w", ErrInvalid, ep, err)
			}
			a.ServerName = host // whose certificate is verified
		}
		if scheme == "https" || scheme == "unixs" || scheme == "" && config != nil {
			secure++
		}
		m.addresses = append(m.addresses, a)
	}
	switch {
	case secure == 0:
		return m, nil
	case secure < len(endpoints):
		return nil, fmt.Errorf("%w: https and other endpoints are mixed", ErrInvalid)
	case config == nil:
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	m.creds = credentials.NewTLS(config)
	return m, nil
}

// How soon a connection to an unresponsive etcd is given up, and how often connecting is tried
// again.
const (
	pingEvery   = 10 * time.Second
	pingLimit   = 3 * time.Second
	retryLatest = time.Second
)

// dial makes a connection to etcd, beginning with the n-th member. It does not block; the first
// call shows whether etcd is available.
func (m *members) dial(n int) (*grpc.ClientConn, error) {
	turned := make([]resolver.Address, 0, len(m.addresses))
	for i := range m.addresses {
		turned = append(turned, m.addresses[(n+i)%len(m.addresses)])
	}
	where := manual.NewBuilderWithScheme("wiretap")
	where.InitialState(resolver.State{Addresses: turned})
	return grpc.NewClient("wiretap:///etcd",
		grpc.WithResolvers(where), grpc.WithTransportCredentials(m.creds),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			network := "tcp"
			if path, ok := strings.CutPrefix(address, "unix:"); ok {
				network, address = "unix", path
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: retryLatest},
			MinConnectTimeout: pingLimit,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingLimit}),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(rawframe.Codec{}), grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)),
	)
}
