package kv_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// stage is etcdtest's, with the keys of a service.
type stage struct {
	*etcdtest.Env
	space kv.Space
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := etcdtest.NewEnv(t, etcdtest.Shared(t))
	return &stage{s, kv.SpaceOf(s.Election)}
}

// leader wins with a session of its own and opens the service.
func (s *stage) leader(cli *clientv3.Client, change ...func(*election.Config)) (*election.Leadership, *kv.Server) {
	s.T.Helper()
	l := s.tenure(cli, change...)
	server, err := kv.New(s.Ctx, l)
	require.NoError(s.T, err)
	return l, server
}

// tenure wins. The session is closed with the test.
func (s *stage) tenure(cli *clientv3.Client, change ...func(*election.Config)) *election.Leadership {
	s.T.Helper()
	return electiontest.Join(s.T, cli, s.Election, func(_ *lease.Config, e *election.Config) {
		for _, f := range change {
			f(e)
		}
	}).Lead(s.T)
}

// trail reads it, without what is not asked for here.
func (s *stage) trail() []kv.Entry {
	s.T.Helper()
	trail, err := s.space.ReadTrail(s.Ctx, s.Admin)
	require.NoError(s.T, err)
	for _, e := range trail {
		require.True(s.T, e.Untouched)
	}
	return trail
}

// ids are the request ids on the trail, in order.
func (s *stage) ids() (ids []string) {
	s.T.Helper()
	for _, e := range s.trail() {
		ids = append(ids, e.GetRequestId())
	}
	return ids
}

// revision is etcd's newest.
func (s *stage) revision() int64 {
	s.T.Helper()
	resp, err := s.Admin.Get(s.Ctx, "nothing")
	require.NoError(s.T, err)
	return resp.Header.Revision
}

// dial serves the service by itself, without a curator, and returns a client.
func (s *stage) dial(server *kv.Server) kvpb.KVClient {
	s.T.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.T, err)
	srv := grpc.NewServer()
	kvpb.RegisterKVServer(srv, server)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(s.T, err)
	s.T.Cleanup(func() {
		require.NoError(s.T, conn.Close())
		srv.Stop()
		require.NoError(s.T, <-served)
	})
	return kvpb.NewKVClient(conn)
}

func put(id, key, value string) *kvpb.PutRequest {
	return &kvpb.PutRequest{RequestId: id, Key: key, Value: []byte(value)}
}
