package watch_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Two targets share the stream of a client. The refusal of a read for one of them, for example because
// the permission to read its keys was revoked, ends the following of that one only.
//
// Fails if the refusal for one is taken for the refusal for the other, because it ends the stream of
// both.
func TestRefusalOfAnotherTarget(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		one := s.target(0)
		one.Probe = s.probe(func() bool { return true })
		refused, _ := s.follow(t, one)
		s.place(t, 10)
		other := s.target(0)
		other.Key, other.End = "l/", "l0"
		follows, _ := s.follow(t, other) // its stream is checked with a Get
		s.place(t, 10)
		for ended := false; !ended; {
			select {
			case r := <-s.reads:
				if string(r.op.KeyBytes()) == "k/p" {
					r.fail(rpctypes.ErrPermissionDenied)
				} else {
					r.fail(rpctypes.ErrNoLeader)
				}
			case err := <-refused:
				require.ErrorIs(t, err, rpctypes.ErrPermissionDenied)
				ended = true
			}
		}
		require.Equal(t, []string{"snapshot 10 with 0", "snapshot 10 with 0"}, s.told(), "the other one is not interrupted")
		select {
		case err := <-follows:
			t.Fatal("ended, although its own reads were not refused:", err)
		default:
		}
	})
}

// forbidding is an etcd behind a balancer that answers 403 to each watch.
type forbidding struct {
	pb.UnimplementedWatchServer
	pb.UnimplementedKVServer
	opened chan struct{}
}

func (f *forbidding) Watch(pb.Watch_WatchServer) error {
	f.opened <- struct{}{}
	return status.Error(codes.PermissionDenied, "unexpected HTTP status code received from server: 403 (Forbidden)")
}

func (f *forbidding) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 10}}, nil
}

// The stream of a plain client that a balancer refuses is opened again: only the answer of a read is
// final.
//
// Fails if the end of the stream is taken for the refusal of a read.
func TestStreamRefusedOnTheWay(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &forbidding{opened: make(chan struct{}, 100)}
	server := grpc.NewServer()
	pb.RegisterWatchServer(server, f)
	pb.RegisterKVServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{listener.Addr().String()}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = cli.Close() })
	follow(t, patient(cli), "k/")
	for range 3 {
		etcdtest.Take(t, f.opened, "another attempt")
	}
}
