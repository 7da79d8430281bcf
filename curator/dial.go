package curator

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/eldest-io/eldest/elector"
)

// The pace of a connection between two nodes.
const (
	// pingEvery is the least that gRPC's client allows; hence the heartbeat beside it.
	pingEvery   = 10 * time.Second
	pingTimeout = 3 * time.Second
	// pingLimit is what the server allows; it ends connections that ping more often.
	pingLimit = 5 * time.Second
	// A leader that cannot be dialled is tried again this often: calls fail meanwhile.
	dialFirst, dialLimit, dialTimeout = 50 * time.Millisecond, time.Second, 5 * time.Second
)

var errNoCredentials = errors.New("Config.PeerCredentials has none for it")

// How much may be under way to a reader who does not read, on a stream and on all of a
// connection. They are fixed because gRPC otherwise measures each connection with a ping
// for every message, which costs a short forwarded call a quarter of its time.
const (
	streamWindow = 512 << 10
	connWindow   = 4 << 20
)

// secured returns an error unless options say how a connection is secured, be it that it is
// not. It dials nobody.
func secured(options []grpc.DialOption) error {
	conn, err := grpc.NewClient("passthrough:///leader", options...)
	if err != nil {
		return err // gRPC wants to be told, too
	}
	return conn.Close()
}

// dialer returns the function that makes connections to leaders.
//
// The call's own limits are the caller's and the service's business, so none are set
// here; and nothing is sent twice on our account: what may have reached the leader may
// have been carried out.
//
// Where the listener has credentials there is no plain text by default: a connection for
// which nothing was said is not made. closers are the goroutines that close them.
func dialer(cfg Config, closers *sync.WaitGroup) func(elector.Leader) (*link, error) {
	options := []grpc.DialOption{
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingTimeout}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: dialFirst, Multiplier: 1.6, Jitter: 0.2, MaxDelay: dialLimit},
			MinConnectTimeout: dialTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt), grpc.MaxCallSendMsgSize(math.MaxInt)),
	}
	if cfg.ServerCredentials == nil {
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials())) // unless there are others
	}
	options = append(options, cfg.PeerOptions...)
	return func(to elector.Leader) (*link, error) {
		l := &link{closers: closers}
		l.life, l.end = context.WithCancelCause(context.Background())
		own := options[:len(options):len(options)]
		if cfg.PeerCredentials != nil {
			transport := cfg.PeerCredentials(to)
			if transport == nil {
				return nil, errNoCredentials
			}
			own = append(own, grpc.WithTransportCredentials(vouching{transport, &l.impostor}))
		}
		var err error
		l.ClientConn, err = grpc.NewClient(to.Address, own...)
		return l, err
	}
}
