package kv_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A list is what there was at one revision, however many pages it takes.
func TestListIsOneRevision(t *testing.T) {
	s := newStage(t)
	_, server := s.leader(s.Admin)
	const n = 700 // three pages
	for i := range n {
		_, err := s.Admin.Put(s.Ctx, s.space.Data(fmt.Sprintf("k%03d", i)), "old")
		require.NoError(t, err)
	}
	_, err := server.Put(s.Ctx, put("r1", "other", "x"))
	require.NoError(t, err)

	out := &sink{ctx: s.Ctx}
	out.send = func() {
		if len(out.items) == 1 { // the other pages are not read yet
			_, err := server.Put(s.Ctx, put("r2", "k699", "new"))
			require.NoError(t, err)
			_, err = server.Put(s.Ctx, put("r3", "k700", "new"))
			require.NoError(t, err)
		}
	}
	require.NoError(t, server.List(&kvpb.ListRequest{Prefix: "k"}, out))
	require.Equal(t, n, len(out.items))
	for i, item := range out.items {
		require.Equal(t, fmt.Sprintf("k%03d", i), item.GetKey())
		require.Equal(t, "old", string(item.GetValue()))
	}
}

// A list over the network, to its end.
func TestList(t *testing.T) {
	s := newStage(t)
	_, server := s.leader(s.Admin)
	for _, key := range []string{"b", "a/1", "a/2"} {
		_, err := server.Put(s.Ctx, put("r", key, "of "+key))
		require.NoError(t, err)
	}
	client := s.dial(server)
	for prefix, want := range map[string][]string{
		"": {"a/1=of a/1", "a/2=of a/2", "b=of b"}, "a/": {"a/1=of a/1", "a/2=of a/2"}, "c": nil,
	} {
		stream, err := client.List(s.Ctx, &kvpb.ListRequest{Prefix: prefix})
		require.NoError(t, err)
		var got []string
		for {
			item, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			got = append(got, item.GetKey()+"="+string(item.GetValue()))
		}
		require.Equal(t, want, got)
	}
}

// A list of a leader that is deposed in the middle of it ends there.
func TestListIsGuardedPageByPage(t *testing.T) {
	s := newStage(t)
	l, server := s.leader(s.Admin)
	for i := range 300 {
		_, err := s.Admin.Put(s.Ctx, s.space.Data(fmt.Sprint(i)), "x")
		require.NoError(t, err)
	}
	out := &sink{ctx: s.Ctx}
	out.send = func() {
		if len(out.items) == 1 {
			require.NoError(t, l.Resign(s.Ctx))
		}
	}
	require.ErrorIs(t, server.List(&kvpb.ListRequest{}, out), eldest.ErrResigned)
	require.Equal(t, 256, len(out.items), "the page that it had")
}

// History that is compacted away under a list ends it with what etcd says.
func TestListOfCompactedHistory(t *testing.T) {
	s := newStage(t)
	cli := etcdtest.Start(t, etcdtest.Config{}).Client(t) // compacting the shared one would disturb others
	_, server := s.leader(cli)
	for i := range 300 {
		_, err := cli.Put(s.Ctx, s.space.Data(fmt.Sprint(i)), "x")
		require.NoError(t, err)
	}
	out := &sink{ctx: s.Ctx}
	out.send = func() {
		if len(out.items) == 1 {
			resp, err := cli.Put(s.Ctx, "x", "x")
			require.NoError(t, err)
			_, err = cli.Compact(s.Ctx, resp.Header.Revision)
			require.NoError(t, err)
		}
	}
	err := server.List(&kvpb.ListRequest{}, out)
	require.Equal(t, codes.OutOfRange, status.Code(err), "%v", err)
}

// The trail is read in pages too, and by anybody.
func TestALongTrail(t *testing.T) {
	s := newStage(t)
	_, server := s.leader(s.Admin)
	const n = 600
	for i := range n {
		_, err := server.Put(s.Ctx, put(fmt.Sprint(i), "a", "x"))
		require.NoError(t, err)
	}
	ids := s.ids()[1:]
	require.Len(t, ids, n)
	for i, id := range ids {
		require.Equal(t, fmt.Sprint(i), id)
	}
}

// What was changed afterwards, and what is no record, is told.
func TestAForgedTrail(t *testing.T) {
	s := newStage(t)
	_, server := s.leader(s.Admin)
	_, err := server.Put(s.Ctx, put("r1", "a", "x"))
	require.NoError(t, err)
	trail := s.trail()
	resp, err := s.Admin.Get(s.Ctx, trail[1].EtcdKey)
	require.NoError(t, err)
	_, err = s.Admin.Put(s.Ctx, trail[1].EtcdKey, string(resp.Kvs[0].Value))
	require.NoError(t, err)
	trail, err = s.space.ReadTrail(s.Ctx, s.Admin)
	require.NoError(t, err)
	require.True(t, trail[0].Untouched)
	require.False(t, trail[1].Untouched)

	_, err = s.Admin.Put(s.Ctx, s.space.Trail()+"x", "\xff")
	require.NoError(t, err)
	_, err = s.space.ReadTrail(s.Ctx, s.Admin)
	require.ErrorIs(t, err, kv.ErrNoRecord)
}

func TestSpace(t *testing.T) {
	s := kv.SpaceOf("shop")
	key, ok := s.Key(s.Data("a/b"))
	require.True(t, ok)
	require.Equal(t, "a/b", key)
	for _, other := range []string{"", s.Data(""), s.Trail() + "x", kv.SpaceOf("shop2").Data("a"), "shop/123"} {
		_, ok := s.Key(other)
		require.False(t, ok, other)
	}
	_, err := s.ParseEntry(&mvccpb.KeyValue{Key: []byte(s.Data("a"))})
	require.ErrorIs(t, err, kv.ErrNoRecord)
}

// sink is the server's side of a List without a network.
type sink struct {
	kvpb.KV_ListServer
	ctx   context.Context
	items []*kvpb.Item
	send  func() // after each
}

func (s *sink) Context() context.Context { return s.ctx }

func (s *sink) Send(item *kvpb.Item) error {
	s.items = append(s.items, item)
	s.send()
	return nil
}
