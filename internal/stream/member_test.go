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

// members starts servers, and returns a function that opens a link through a client of all of them, and
// returns the number of the server that the link is at.
func members(t *testing.T, n int, dial func(ctx context.Context, address string) (net.Conn, error)) (cli *clientv3.Client, link func() int) {
	t.Helper()
	opened := make(chan int, 1)
	var endpoints []string
	for i := range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		server := grpc.NewServer()
		pb.RegisterWatchServer(server, silent{opened: opened, number: i})
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		endpoints = append(endpoints, listener.Addr().String())
	}
	cli, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialOptions: []grpc.DialOption{grpc.WithContextDialer(dial)}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = cli.Close() })
	open := stream.AtMembers(cli)
	link = func() int {
		ctx, cancel := context.WithCancel(etcdtest.Context(t))
		defer cancel()
		l, err := open(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, l.Send(&pb.WatchRequest{}))
		return etcdtest.Take(t, opened, "the link")
	}
	connected := make(map[int]bool)
	etcdtest.Eventually(t, func() bool { connected[link()] = true; return len(connected) == n }, "all connections")
	return cli, link
}

func tcp(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// TestRegression9AnotherMember: each link is at another member than the one before, however many
// other requests the client sends in between, so a member that does not respond costs one attempt.
func TestRegression9AnotherMember(t *testing.T) {
	const n = 3
	cli, link := members(t, n, tcp)
	for between := range 2 * n {
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

// tunnelled is a connection whose other end seems to have the address of a tunnel.
type tunnelled struct{ net.Conn }

func (tunnelled) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "tunnel", Net: "unix"} }

// If all members seem to have one address, links are at each of them in turn.
func TestMembersBehindOneAddress(t *testing.T) {
	for _, n := range []int{2, 3} {
		_, link := members(t, n, func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := tcp(ctx, address)
			return tunnelled{conn}, err
		})
		at := make(map[int]bool)
		for range n {
			at[link()] = true
		}
		require.Len(t, at, n)
	}
}
