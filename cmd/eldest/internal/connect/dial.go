package connect

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/elector"
)

// How soon a connection that failed without an error is given up while requests are in flight. gRPC's
// clients do not ping more often than every 10 s; what must be noticed sooner has a timeout of its
// own, above all renewals.
const (
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 3 * time.Second
)

// Config makes a client's config from the resolved flags. It reads the files that they name and sends
// nothing.
func (f *Flags) Config() (*clientv3.Config, error) {
	cfg, err := clientv3.NewClientConfig(&clientv3.ConfigSpec{
		Endpoints:        f.Endpoints,
		DialTimeout:      f.DialTimeout,
		KeepAliveTime:    keepaliveTime,
		KeepAliveTimeout: keepaliveTimeout,
		Secure: &clientv3.SecureConfig{
			Cacert: f.CACert, Cert: f.Cert, Key: f.Key,
			InsecureSkipVerify: f.SkipVerify,
			// The scheme of the endpoints decides, as with etcdctl.
			InsecureTransport: true,
		},
		Auth: &clientv3.AuthConfig{Username: f.User, Password: f.Password},
	}, zap.NewNop())
	if err != nil {
		return nil, cli.Usagef("--cacert, --cert, --key: %w", err)
	}
	// Errors are reported where they matter; a log of the client's attempts between the lines of the
	// output is of no use.
	cfg.Logger = zap.NewNop()
	if !f.FollowMembers {
		cfg.AutoSyncInterval = -1
	}
	cfg.DialOptions = []grpc.DialOption{
		grpc.WithConnectParams(reconnecting(f.DialTimeout)),
		grpc.WithChainUnaryInterceptor(f.remember), grpc.WithChainStreamInterceptor(f.rememberStream),
	}
	return cfg, nil
}

// Dial makes a client for the resolved flags, within the namespace. Without a user it sends nothing
// and does not fail if etcd is unavailable; with a user it logs in, which takes up to --dial-timeout.
// ctx bounds the call, not the client: a leader that was asked to end still needs it. With
// FollowMembers the client uses members that join etcd later.
func (f *Flags) Dial(ctx context.Context, more ...grpc.DialOption) (*clientv3.Client, error) {
	cfg, err := f.Config()
	if err != nil {
		return nil, err
	}
	cfg.DialOptions = append(cfg.DialOptions, more...)

	// The client's own context: it ends with ctx during the call and is detached from it afterwards.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, end)
	cfg.Context = life
	client, err := elector.Dial(*cfg)
	if !detach() && err == nil {
		_ = client.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		return nil, err
	}
	// The client keeps its type, so that the library's checks for a nil one work.
	if f.Namespace != "" {
		client.KV = namespace.NewKV(client.KV, f.Namespace)
		client.Watcher = namespace.NewWatcher(client.Watcher, f.Namespace)
		client.Lease = namespace.NewLease(client.Lease, f.Namespace)
	}
	return client, nil
}

// Kept dials for the keeper of this process (keeper.Serve), which was started with resolved flags
// as JSON.
func Kept(ctx context.Context, with []byte) (*clientv3.Client, error) {
	var f Flags
	if err := json.Unmarshal(with, &f); err != nil {
		return nil, err
	}
	return f.Dial(ctx)
}

// reconnecting is the back-off between attempts to connect. gRPC's own pauses grow to two minutes: a
// lease would be lost, and a command would wait, long after etcd is back.
func reconnecting(attempt time.Duration) grpc.ConnectParams {
	return grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
		MinConnectTimeout: attempt,
	}
}

// remember keeps what was wrong with the connection when an attempt failed. gRPC has it in the status
// of a request that waited for a connection in vain; the client turns that into the bare error of the
// context.
func (f *Flags) remember(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoker grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	err := invoker(ctx, method, req, reply, cc, opts...)
	f.judge(err)
	return err
}

// rememberStream is remember for the opening of streams, such as renewals.
func (f *Flags) rememberStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := streamer(ctx, desc, cc, method, opts...)
	f.judge(err)
	return stream, err
}

// judge extracts gRPC's text about a missing connection from a status. A request that succeeds clears
// it.
func (f *Flags) judge(err error) {
	switch _, trouble, ok := strings.Cut(status.Convert(err).Message(), "latest balancer error: "); {
	case err == nil:
		f.trouble.Store("")
	case ok:
		trouble = strings.TrimPrefix(trouble, "connection error: desc = ")
		if text, err := strconv.Unquote(trouble); err == nil {
			trouble = strings.TrimPrefix(text, "transport: ")
		}
		f.trouble.Store(trouble)
	}
}
