package kv_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// env is an etcdtest.Env with the keys of a service.
type env struct {
	*etcdtest.Env
	space kv.Space
}

func newEnv(t *testing.T) *env {
	t.Helper()
	s := etcdtest.NewEnv(t, etcdtest.Shared(t))
	return &env{s, kv.SpaceOf(s.Election)}
}

// leader wins with its own session, which is closed with the test, and opens the service.
func (s *env) leader(cli *clientv3.Client, change ...electiontest.Change) (*election.Leadership, *kv.Server) {
	s.T.Helper()
	l := electiontest.Join(s.T, cli, s.Election, change...).Lead(s.T)
	server, err := kv.New(s.Ctx, l)
	require.NoError(s.T, err)
	return l, server
}

// put writes a key, and requires that the write is acknowledged.
func (s *env) put(server *kv.Server, id, key, value string) *kvpb.Receipt {
	s.T.Helper()
	resp, err := server.Put(s.Ctx, put(id, key, value))
	require.NoError(s.T, err)
	return resp.GetReceipt()
}

// fill writes keys without the service.
func (s *env) fill(cli *clientv3.Client, n int) {
	s.T.Helper()
	for i := range n {
		_, err := cli.Put(s.Ctx, s.space.Data(fmt.Sprintf("k%03d", i)), "old")
		require.NoError(s.T, err)
	}
}

// list reads keys, and calls first when the first one has arrived: the other pages are not read
// yet.
func (s *env) list(from lister, prefix string, first func()) ([]string, error) {
	out := &sink{ctx: s.Ctx, first: first}
	err := from.List(&kvpb.ListRequest{Prefix: prefix}, out)
	return out.items, err
}

type lister interface {
	List(r *kvpb.ListRequest, stream grpc.ServerStreamingServer[kvpb.Item]) error
}

// sink is the server's side of a List without a network.
type sink struct {
	kvpb.KV_ListServer
	ctx   context.Context
	items []string
	first func()
}

func (s *sink) Context() context.Context { return s.ctx }

func (s *sink) Send(item *kvpb.Item) error {
	s.items = append(s.items, item.GetKey()+"="+string(item.GetValue()))
	if len(s.items) == 1 && s.first != nil {
		s.first()
	}
	return nil
}

// trail reads the trail, and requires that all records are untouched.
func (s *env) trail() []kv.Entry {
	s.T.Helper()
	trail, err := s.space.ReadTrail(s.Ctx, s.Admin)
	require.NoError(s.T, err)
	for _, e := range trail {
		require.True(s.T, e.Untouched)
	}
	return trail
}

// ids are the request ids on the trail, in order.
func (s *env) ids() (ids []string) {
	s.T.Helper()
	for _, e := range s.trail() {
		ids = append(ids, e.GetRequestId())
	}
	return ids
}

// revision is etcd's newest revision.
func (s *env) revision() int64 {
	s.T.Helper()
	resp, err := s.Admin.Get(s.Ctx, "nothing")
	require.NoError(s.T, err)
	return resp.Header.Revision
}

func put(id, key, value string) *kvpb.PutRequest {
	return &kvpb.PutRequest{RequestId: id, Key: key, Value: []byte(value)}
}
