package kv_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A list is as of one revision, however many pages it takes. The trail is read in pages, too, and
// by any client.
func TestListIsOneRevision(t *testing.T) {
	s := newEnv(t)
	_, server := s.leader(s.Admin)
	const n = 300 // two pages
	for i := range n {
		s.put(server, fmt.Sprint(i), fmt.Sprintf("k%03d", i), "old")
	}
	s.put(server, "other", "other", "x")
	items, err := s.list(server, "k", func() {
		s.put(server, "late", "k299", "new")
		s.put(server, "later", "k300", "new")
	})
	require.NoError(t, err)
	require.Len(t, items, n)
	ids := s.ids()[1:]
	require.Len(t, ids, n+3)
	for i, item := range items {
		require.Equal(t, fmt.Sprintf("k%03d=old", i), item)
		require.Equal(t, fmt.Sprint(i), ids[i])
	}
	for prefix, want := range map[string][]string{"k00": items[:10], "oth": {"other=x"}, "c": nil} {
		got, err := s.list(server, prefix, nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// A list ends with the error in the middle if its leader is deposed, or if its history is
// compacted.
func TestListEndsInTheMiddle(t *testing.T) {
	s := newEnv(t)
	l, server := s.leader(s.Admin)
	s.fill(s.Admin, 300)
	items, err := s.list(server, "", func() { require.NoError(t, l.Resign(s.Ctx)) })
	require.ErrorIs(t, err, eldest.ErrResigned)
	require.Len(t, items, 256, "the page that it had")

	cli := etcdtest.Start(t, etcdtest.Config{}).Client(t) // compacting the shared etcd would disturb other tests
	_, server = s.leader(cli)
	s.fill(cli, 300)
	_, err = s.list(server, "", func() {
		resp, err := cli.Put(s.Ctx, "x", "x")
		require.NoError(t, err)
		_, err = cli.Compact(s.Ctx, resp.Header.Revision)
		require.NoError(t, err)
	})
	require.Equal(t, codes.OutOfRange, status.Code(err), "%v", err)
}

// ReadTrail reports a record that was changed afterwards, and a key that is not a record.
func TestAForgedTrail(t *testing.T) {
	s := newEnv(t)
	_, server := s.leader(s.Admin)
	s.put(server, "r1", "a", "x")
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
