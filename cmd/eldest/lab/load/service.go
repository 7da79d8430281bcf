package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/lease"
)

// store is the leader-elected service: it puts a key that was never there, behind the
// guard of its tenure.
type store struct {
	kvpb.UnimplementedKVServer
	tenure *elector.Leadership
}

// Put answers like curator/kv, without its trail, which grows with every write.
func (s store) Put(ctx context.Context, in *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	_, err := s.tenure.Txn(ctx).Then(clientv3.OpPut(in.GetKey(), fmt.Sprint(s.tenure.Token()))).Commit()
	switch {
	case err == nil:
		return &kvpb.PutResponse{}, nil
	case errors.Is(err, eldest.ErrOutcomeUnknown):
		return nil, status.Error(codes.Unknown, err.Error())
	case errors.Is(err, eldest.ErrDeposed), errors.Is(err, eldest.ErrNotLeading):
		return nil, curator.NothingApplied(err)
	case ctx.Err() != nil:
		return nil, err // the caller's end, or the tenure's
	default:
		return nil, status.Error(codes.Unknown, err.Error())
	}
}

// node is one instance of the service, and a caller's connection to it.
type node struct {
	*curator.Curator
	conn *grpc.ClientConn
	kvpb.KVClient
	stop context.CancelFunc
	done chan error
}

// serve starts a node.
func (r *run) serve(id string, cli *clientv3.Client) (*node, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &node{done: make(chan error, 1)}
	n.Curator, err = curator.New(curator.Config{
		Elector: elector.Config{
			Election: service, NodeID: id, Source: elector.Always(elector.Client(cli)),
			Session: lease.Config{TTL: r.ttl()},
		},
		Listener: listener,
		Services: func(_ context.Context, l *elector.Leadership, to grpc.ServiceRegistrar) error {
			kvpb.RegisterKVServer(to, store{tenure: l})
			return nil
		},
		Background: func(ctx context.Context, _ *elector.Leadership) error {
			r.book.count("tenures of the service")
			select { // and then somebody else's turn
			case <-time.After(time.Duration(r.scale.HandOver)):
			case <-ctx.Done():
			}
			return nil
		},
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	n.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	n.KVClient = kvpb.NewKVClient(n.conn)
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	go func() { n.done <- n.Run(ctx) }()
	return n, nil
}

// end stops a node and judges how it ended.
func (n *node) end(book *Book) {
	n.stop()
	if err := <-n.done; !errors.Is(err, context.Canceled) || errors.Is(err, eldest.ErrStuck) {
		book.violation("a node of the service ended with %v", err)
	}
	_ = n.conn.Close() // nobody calls any more
}
