package stream

import (
	"context"
	"reflect"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/peer"

	"github.com/eldest-io/eldest/internal/lent"
	"github.com/eldest-io/eldest/internal/retry"
)

// Shared is the one stream of all users that watch through a client in the same way. Made by Of,
// released by Release.
type Shared struct {
	*Stream
	way way
}

// way is a client, and how its stream is checked.
type way struct {
	kv, watcher     any
	check, patience time.Duration
}

var streams lent.Things[way, *Stream]

// plainWatcher is the type of a client's own Watcher that is not wrapped.
var plainWatcher = reflect.TypeOf(clientv3.NewWatchFromWatchClient(nil, nil))

// Of returns the stream of a client. If the client is plain, the stream is one of etcd's API. A
// client is not plain if its Watcher is not etcd's, for example that of a namespace, or if it has
// no connection, for example inside an etcd server. Then each watch is one of that Watcher (see
// over.go). Each Of must be followed by one Release.
func Of(kv clientv3.KV, watcher clientv3.Watcher, check, patience time.Duration) *Shared {
	cfg := Config{Check: check, Patience: patience, Backoff: retry.Default()}
	w := way{kv, watcher, check, patience}
	if client, ok := watcher.(*clientv3.Client); ok && reflect.TypeOf(client.Watcher) == plainWatcher && client.ActiveConnection() != nil {
		kv, w.kv = clientv3.NewKV(client), nil
		cfg.Open = (&member{client: client}).open
	} else {
		cfg.Open = (&lanes{watcher: watcher}).open
	}
	cfg.Revision = func(ctx context.Context, key string) (int64, error) {
		resp, err := kv.Get(ctx, key, clientv3.WithCountOnly())
		if err != nil {
			return 0, err
		}
		return resp.Header.Revision, nil
	}
	if !reflect.ValueOf(w).Comparable() {
		w = way{kv: new(int)} // not shared
	}
	return &Shared{streams.Take(w, func() *Stream { return New(cfg) }), w}
}

// member opens links of a plain client, each at another member than the one before. The client takes
// its connections in turn, so if there are as many reads between two links as there are other members,
// each link would be at the same member. If that one does not respond, gRPC closes its connection only
// after 13 s. With a password the client sends a request of its own before each link, so with two
// members both links may be at the same one.
type member struct {
	client *clientv3.Client
	last   string
}

func (m *member) open(ctx context.Context, _ error) (Link, error) {
	// If all members seem to have one address, for example that of a tunnel, the link is at the last of
	// these attempts: one more than there are members, so that this is not always the same one.
	attempts := len(m.client.Endpoints())
	if attempts > 1 {
		attempts++
	}
	for {
		attempt, cancel := context.WithCancel(ctx)
		link, err := pb.NewWatchClient(m.client.ActiveConnection()).Watch(attempt)
		if err != nil {
			cancel()
			return nil, err
		}
		at := ""
		if p, ok := peer.FromContext(link.Context()); ok {
			at = p.Addr.String()
		}
		if attempts--; at != m.last || attempts <= 0 {
			m.last = at
			context.AfterFunc(ctx, cancel)
			return link, nil
		}
		cancel()
	}
}

// Release releases the stream. The last Release closes it, and blocks until no report is running.
func (s *Shared) Release() {
	if streams.Return(s.way) {
		s.Close()
	}
}
