package stream

import (
	"context"
	"reflect"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/lent"
	"github.com/eldest-io/eldest/internal/retry"
)

// Shared is the one stream of all that watch through a client in the same way. Made by Of,
// ended by Release.
type Shared struct {
	*Stream
	way way
}

// way is a client, and how its stream is checked.
type way struct {
	client          *clientv3.Client
	check, patience time.Duration
}

var streams lent.Things[way, *Stream]

// plainWatcher is the type of a client's own Watcher, which nobody has wrapped.
var plainWatcher = reflect.TypeOf(clientv3.NewWatchFromWatchClient(nil, nil))

// Of returns the stream of a client, or nil if it is not plain: its Watcher is another one than
// etcd's, as that of a namespace is, or it has no connection, as one inside an etcd server has
// none. Each Of is followed by one Release.
func Of(watcher clientv3.Watcher, check, patience time.Duration) *Shared {
	client, ok := watcher.(*clientv3.Client)
	if !ok || reflect.TypeOf(client.Watcher) != plainWatcher || client.ActiveConnection() == nil {
		return nil
	}
	w := way{client, check, patience}
	return &Shared{streams.Take(w, func() *Stream { return New(w.config()) }), w}
}

// Release gives the stream back. The last one closes it, and blocks until no report is running.
func (s *Shared) Release() {
	if streams.Return(s.way) {
		s.Close()
	}
}

func (w way) config() Config {
	kv := clientv3.NewKV(w.client)
	return Config{
		Open: func(ctx context.Context) (pb.Watch_WatchClient, error) {
			return pb.NewWatchClient(w.client.ActiveConnection()).Watch(ctx)
		},
		Revision: func(ctx context.Context, key string) (int64, error) {
			resp, err := kv.Get(ctx, key, clientv3.WithCountOnly())
			if err != nil {
				return 0, err
			}
			return resp.Header.Revision, nil
		},
		Check: w.check, Patience: w.patience, Backoff: retry.Default(),
	}
}
