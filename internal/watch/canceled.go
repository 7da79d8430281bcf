package watch

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Canceled returns the last response of a watch that ends because of err: it is Canceled, and its
// Err is err. A response's error is not exported, so etcd's client makes the response: it is that of
// a watcher whose requests all fail with err.
//
// err must have no gRPC status (rpcerr.Opaque): etcd's client repeats a request that fails with some
// of them. It sends nothing, and leaves nothing running.
func Canceled(err error) clientv3.WatchResponse {
	return <-clientv3.NewWatchFromWatchClient(failing{err}, nil).Watch(context.Background(), "")
}

// failing is a connection to etcd whose watches all fail.
type failing struct{ err error }

// Watch returns the error; see etcdserverpb.WatchClient.
func (f failing) Watch(context.Context, ...grpc.CallOption) (etcdserverpb.Watch_WatchClient, error) {
	return nil, f.err
}
