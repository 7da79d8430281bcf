package kv_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// stage is an election of a test's own on the shared etcd.
type stage struct {
	t        *testing.T
	ctx      context.Context
	election string
	space    kv.Space
	admin    *clientv3.Client
}

var runs atomic.Int64

func newStage(t *testing.T) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "|"), runs.Add(1)) // as go test -count repeats it
	return &stage{t: t, ctx: ctx, election: name, space: kv.SpaceOf(name), admin: etcdtest.Shared(t).Client(t)}
}

// leader wins with a session of its own and opens the service.
func (s *stage) leader(cli *clientv3.Client, change ...func(*election.Config)) (*election.Leadership, *kv.Server) {
	s.t.Helper()
	l := s.tenure(cli, change...)
	server, err := kv.New(s.ctx, l)
	require.NoError(s.t, err)
	return l, server
}

// tenure wins. The session is closed with the test.
func (s *stage) tenure(cli *clientv3.Client, change ...func(*election.Config)) *election.Leadership {
	s.t.Helper()
	session, err := lease.Open(s.ctx, lease.Config{Lease: cli, TTL: time.Minute})
	require.NoError(s.t, err)
	cfg := election.Config{Election: s.election, Session: session, KV: cli, Watcher: cli}
	for _, f := range change {
		f(&cfg)
	}
	c, err := election.New(cfg)
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = c.Close(ctx) // a test may have ended it already
		_ = session.Close(ctx)
	})
	l, err := c.Campaign(s.ctx)
	require.NoError(s.t, err)
	return l
}

// trail reads it, without what is not asked for here.
func (s *stage) trail() []kv.Entry {
	s.t.Helper()
	trail, err := s.space.ReadTrail(s.ctx, s.admin)
	require.NoError(s.t, err)
	for _, e := range trail {
		require.True(s.t, e.Untouched)
	}
	return trail
}

// ids are the request ids on the trail, in order.
func (s *stage) ids() (ids []string) {
	s.t.Helper()
	for _, e := range s.trail() {
		ids = append(ids, e.GetRequestId())
	}
	return ids
}

// revision is etcd's newest.
func (s *stage) revision() int64 {
	s.t.Helper()
	resp, err := s.admin.Get(s.ctx, "nothing")
	require.NoError(s.t, err)
	return resp.Header.Revision
}

// dial serves the service by itself, without a curator, and returns a client.
func (s *stage) dial(server *kv.Server) kvpb.KVClient {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	srv := grpc.NewServer()
	kvpb.RegisterKVServer(srv, server)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		require.NoError(s.t, conn.Close())
		srv.Stop()
		require.NoError(s.t, <-served)
	})
	return kvpb.NewKVClient(conn)
}

func put(id, key, value string) *kvpb.PutRequest {
	return &kvpb.PutRequest{RequestId: id, Key: key, Value: []byte(value)}
}
