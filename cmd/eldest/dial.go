package main

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// How soon a connection that died without a word is given up. etcd refuses pings
// that come more often than every 5 s on its own defaults only where there is no
// traffic at all, and the client pings only while requests are under way.
const (
	keepaliveTime    = 3 * time.Second
	keepaliveTimeout = 3 * time.Second
)

// dial makes a client for the resolved flags, within the namespace. Without a
// user it sends nothing and cannot fail for want of etcd; with one it logs in,
// which takes up to --dial-timeout. ctx bounds the call, not the client: a leader
// that was told to end still needs it.
func (f *connFlags) dial(ctx context.Context) (*clientv3.Client, error) {
	cfg, err := clientv3.NewClientConfig(&clientv3.ConfigSpec{
		Endpoints:        f.endpoints,
		DialTimeout:      f.dialTimeout,
		KeepAliveTime:    keepaliveTime,
		KeepAliveTimeout: keepaliveTimeout,
		Secure: &clientv3.SecureConfig{
			Cacert: f.cacert, Cert: f.cert, Key: f.key,
			InsecureSkipVerify: f.skipVerify,
			// The scheme of the endpoints decides, as with etcdctl.
			InsecureTransport: true,
		},
		Auth: &clientv3.AuthConfig{Username: f.user, Password: f.password},
	}, zap.NewNop())
	if err != nil {
		return nil, usageErrorf("--cacert, --cert, --key: %w", err)
	}
	// Errors are reported where they matter; a client that logs its attempts
	// between our lines helps nobody.
	cfg.Logger = zap.NewNop()
	cfg.DialOptions = []grpc.DialOption{grpc.WithChainStreamInterceptor(waitForReady)}

	life, end := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, end)
	cfg.Context = life
	client, err := clientv3.New(*cfg)
	if !detach() && err == nil {
		_ = client.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		return nil, err
	}
	if f.namespace != "" {
		client.KV = namespace.NewKV(client.KV, f.namespace)
		client.Watcher = namespace.NewWatcher(client.Watcher, f.namespace)
		client.Lease = namespace.NewLease(client.Lease, f.namespace)
	}
	return client, nil
}

// waitForReady makes streams wait for a connection until their context ends.
// Without it a single renewal, which the client repeats without a pause, keeps a
// processor busy for as long as etcd refuses connections.
func waitForReady(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return streamer(ctx, desc, cc, method, append(opts, grpc.WaitForReady(true))...)
}
