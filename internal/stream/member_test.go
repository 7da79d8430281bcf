package stream_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/stream"
)

// silent is a member that answers no watch. It counts the links, and the requests on them.
type silent struct {
	pb.UnimplementedWatchServer
	opened chan int
	number int
}

func (s silent) Watch(link pb.Watch_WatchServer) error {
	if _, err := link.Recv(); err != nil {
		return nil //nolint:nilerr // a link that was not used
	}
	s.opened <- s.number
	<-link.Context().Done()
	return nil
}

// TestRegression9AnotherMember: each link is at another member than the one before, however many
// other requests the client sends in between, so a member that does not respond costs one attempt.
func TestRegression9AnotherMember(t *testing.T) {
	const members = 3
	opened := make(chan int, 1)
	var endpoints []string
	for i := range members {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		server := grpc.NewServer()
		pb.RegisterWatchServer(server, silent{opened: opened, number: i})
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		endpoints = append(endpoints, listener.Addr().String())
	}
	cli, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = cli.Close() })
	open := stream.AtMembers(cli)
	link := func() int {
		ctx, cancel := context.WithCancel(etcdtest.Context(t))
		defer cancel()
		l, err := open(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, l.Send(&pb.WatchRequest{}))
		return etcdtest.Take(t, opened, "the link")
	}
	connected := make(map[int]bool)
	etcdtest.Eventually(t, func() bool { connected[link()] = true; return len(connected) == members }, "all connections")
	for between := range 2 * members {
		at := link()
		for range 10 {
			for range between {
				_, err := cli.Get(etcdtest.Context(t), "a")
				require.Error(t, err)
			}
			next := link()
			require.NotEqual(t, at, next, "%d requests between", between)
			at = next
		}
	}
}
