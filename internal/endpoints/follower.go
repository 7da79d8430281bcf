package endpoints

import (
	"cmp"
	"context"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/retryrpc"
)

const (
	// every is how often the members are requested if no reply with them has been received.
	every = 30 * time.Second
	// sooner: after failures they are requested again after this part of that time.
	sooner = 10
	// patience bounds a request for the members.
	patience = 5 * time.Second
)

// reconnecting has pauses that are short compared with a lease. An attempt may take as long as a
// packet needs that is lost twice.
var reconnecting = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 5 * time.Second,
}

// Dial makes a client that connects again after pauses of at most a second, unless cfg.DialOptions
// have other grpc.ConnectParams, and that follows the members on a goroutine which ends when the
// client is closed. cfg.AutoSyncInterval is how often the members are requested: 0 is half a minute,
// and if it is negative the endpoints are not changed.
func Dial(cfg clientv3.Config) (*clientv3.Client, error) {
	f := &follower{
		every: cmp.Or(cfg.AutoSyncInterval, every), tls: cfg.TLS != nil,
		lists: make(chan list, 1), failed: make(chan struct{}, 1),
	}
	cfg.AutoSyncInterval = 0
	options := []grpc.DialOption{grpc.WithConnectParams(reconnecting)}
	if f.every > 0 {
		options = append(options, grpc.WithChainUnaryInterceptor(f.intercept))
	}
	cfg.DialOptions = append(options, cfg.DialOptions...)
	cfg.Endpoints = slices.Clone(cfg.Endpoints)
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, err
	}
	retryrpc.ReconnectsItself(client)
	if f.every > 0 {
		go f.run(client, probing(cfg, client, &f.token))
	}
	return client, nil
}

// follower follows the members for one client.
type follower struct {
	every  time.Duration
	tls    bool          // the client's config has TLS
	lists  chan list     // the newest list that was received
	failed chan struct{} // a request failed
	token  token         // of the newest login
}

// intercept reads the lists of members among the client's replies, and notices failures.
func (f *follower) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoker(ctx, method, req, reply, cc, opts...)
	_, probe := reply.(*pb.StatusResponse)
	members, listed := reply.(*pb.MemberListResponse)
	if login, ok := reply.(*pb.AuthenticateResponse); ok && err == nil {
		f.token.Store(login.Token)
	}
	switch code := status.Code(err); {
	case err == nil && listed && req.(*pb.MemberListRequest).GetLinearizable():
		select {
		case <-f.lists: // an older one
		default:
		}
		select {
		case f.lists <- read(members):
		default: // another request has just received one
		}
	case !probe && (code == codes.Unavailable || code == codes.DeadlineExceeded):
		select {
		case f.failed <- struct{}{}:
		default:
		}
	}
	return err
}

// run follows the members until the client is closed.
func (f *follower) run(client *clientv3.Client, probing clientv3.Config) {
	s := newSet(client, probing, f.tls, f.every)
	tick := time.NewTimer(f.every)
	defer tick.Stop()
	for asked := (time.Time{}); ; {
		ask := false
		select {
		case <-client.Ctx().Done():
			return
		case l := <-f.lists:
			s.update(l)
		case <-f.failed:
			if ask = time.Since(asked) >= f.every/sooner; !ask {
				continue
			}
		case <-tick.C:
			ask = true
		}
		if ask {
			asked = time.Now()
			ctx, cancel := context.WithTimeout(client.Ctx(), patience)
			_, _ = client.MemberList(ctx) // intercept has the reply; if it fails, the next one follows
			cancel()
		}
		tick.Reset(f.every)
	}
}
