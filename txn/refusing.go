package txn

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// refusing returns a KV whose calls all fail and send nothing. A guarded KV embeds it:
// methods that a newer client adds to clientv3.KV are refused, and do not bypass the guard.
//
// It is nil with clients before 3.7, whose requests need a real connection. They have no method that a
// guarded KV does not have.
func (g Guard) refusing() clientv3.KV {
	client, ok := any(etcdserverpb.NewKVClient).(func(grpc.ClientConnInterface) etcdserverpb.KVClient)
	if !ok {
		return nil
	}
	return clientv3.NewKVFromKVClient(client(refusing{g}), nil)
}

// refusing is a connection that refuses all requests.
type refusing struct{ guard Guard }

func (r refusing) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return r.refusal()
}

func (r refusing) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, r.refusal()
}

func (r refusing) refusal() error { return r.guard.unguardable("this request") }
