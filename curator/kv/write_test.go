package kv_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// Each write is applied, and its record has its ID, its tenure and its revision.
func TestWritesLeaveRecords(t *testing.T) {
	s := newEnv(t)
	l, server := s.leader(s.Admin)

	first := s.put(server, "r1", "a", "1")
	second, err := server.Append(s.Ctx, &kvpb.AppendRequest{RequestId: "r2", Key: "a", Value: []byte("23")})
	require.NoError(t, err)
	require.Equal(t, int64(3), second.GetLength())
	item, err := server.Get(s.Ctx, &kvpb.GetRequest{Key: "a"})
	require.NoError(t, err)
	require.Equal(t, "123", string(item.GetValue()))
	require.Equal(t, second.GetReceipt().GetRevision(), item.GetRevision())
	third, err := server.Delete(s.Ctx, &kvpb.DeleteRequest{RequestId: "r3", Key: "a"})
	require.NoError(t, err)
	_, err = server.Get(s.Ctx, &kvpb.GetRequest{Key: "a"})
	require.Equal(t, codes.NotFound, status.Code(err))

	trail := s.trail()
	require.Len(t, trail, 4)
	require.Equal(t, kvpb.Record_METHOD_OPEN, trail[0].GetMethod())
	for i, want := range []struct {
		receipt *kvpb.Receipt
		record  *kvpb.Record
	}{
		{first, &kvpb.Record{Method: kvpb.Record_METHOD_PUT, RequestId: "r1", Key: "a", Value: []byte("1")}},
		{second.GetReceipt(), &kvpb.Record{Method: kvpb.Record_METHOD_APPEND, RequestId: "r2", Key: "a", Value: []byte("23")}},
		{third.GetReceipt(), &kvpb.Record{Method: kvpb.Record_METHOD_DELETE, RequestId: "r3", Key: "a"}},
	} {
		want.record.Token, want.record.LeaderKey = int64(l.Token()), l.Key()
		require.True(t, proto.Equal(want.record, trail[i+1].Record), "%v", trail[i+1].Record)
		require.Equal(t, int64(l.Token()), want.receipt.GetToken())
		require.Equal(t, want.receipt.GetRevision(), trail[i+1].Revision)
	}
}

// The caller's own condition keeps its meaning together with the guard.
func TestConditions(t *testing.T) {
	s := newEnv(t)
	_, server := s.leader(s.Admin)
	only := func(id string, revision int64) *kvpb.PutRequest {
		r := put(id, "a", id)
		r.ExpectedRevision = &revision
		return r
	}

	made, err := server.Put(s.Ctx, only("r1", 0))
	require.NoError(t, err)
	_, err = server.Put(s.Ctx, only("r2", 0))
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, fmt.Sprintf("has revision %d, not 0", made.GetReceipt().GetRevision()))
	_, err = server.Put(s.Ctx, only("r3", made.GetReceipt().GetRevision()))
	require.NoError(t, err)
	_, err = server.Delete(s.Ctx, &kvpb.DeleteRequest{RequestId: "r4", Key: "b"})
	require.Equal(t, codes.NotFound, status.Code(err))
	require.Equal(t, []string{"", "r1", "r3"}, s.ids(), "what was not applied leaves no record")
}

// Concurrent appends are neither lost nor added twice.
func TestAppendsAtTheSameTime(t *testing.T) {
	s := newEnv(t)
	_, server := s.leader(s.Admin)
	const n = 30
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			id := fmt.Sprintf("r%02d;", i)
			_, err := server.Append(s.Ctx, &kvpb.AppendRequest{RequestId: id, Key: "a", Value: []byte(id)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	item, err := server.Get(s.Ctx, &kvpb.GetRequest{Key: "a"})
	require.NoError(t, err)
	require.Equal(t, strings.Join(s.ids(), ""), string(item.GetValue()), "the trail has the order")
	for i := range n {
		require.Equal(t, 1, strings.Count(string(item.GetValue()), fmt.Sprintf("r%02d;", i)))
	}
}

// A request that is sent twice is applied twice, and the trail shows it. So a proxy between a
// caller and the service must not repeat requests.
func TestARepetitionIsSeen(t *testing.T) {
	s := newEnv(t)
	_, server := s.leader(s.Admin)
	s.put(server, "r1", "a", "1")
	s.put(server, "r1", "a", "1")
	require.Equal(t, []string{"", "r1", "r1"}, s.ids())
}

// Each tenure has one server and its own part of the trail.
func TestTenures(t *testing.T) {
	s := newEnv(t)
	l1, server1 := s.leader(s.Admin)
	_, err := kv.New(s.Ctx, l1)
	require.ErrorIs(t, err, eldest.ErrInvalid)
	s.put(server1, "r1", "a", "1")
	require.NoError(t, l1.Resign(s.Ctx))

	l2, server2 := s.leader(s.Admin)
	item, err := server2.Get(s.Ctx, &kvpb.GetRequest{Key: "a"})
	require.NoError(t, err)
	require.Equal(t, "1", string(item.GetValue()), "the data is the next leader's")
	s.put(server2, "r2", "a", "2")

	var tokens []int64
	for _, e := range s.trail() {
		tokens = append(tokens, e.GetToken())
	}
	require.Equal(t, []int64{int64(l1.Token()), int64(l1.Token()), int64(l2.Token()), int64(l2.Token())}, tokens)
}

func TestBadInput(t *testing.T) {
	s := newEnv(t)
	_, server := s.leader(s.Admin)
	before := s.revision()
	for _, r := range []*kvpb.PutRequest{
		nil, put("", "a", ""), put("r", "", ""), put(strings.Repeat("r", 257), "a", ""), put("r\xff", "a", ""),
		put("r", "a", strings.Repeat("x", 512<<10+1)), put("r", strings.Repeat("k", 4<<10+1), ""),
	} {
		_, err := server.Put(s.Ctx, r)
		require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
	}
	_, err := server.Append(s.Ctx, &kvpb.AppendRequest{Key: "a"})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = server.Delete(s.Ctx, &kvpb.DeleteRequest{RequestId: "r"})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = server.Get(s.Ctx, nil)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.Equal(t, before, s.revision(), "nothing was applied")

	// The largest request is accepted.
	_, err = server.Put(s.Ctx, put(strings.Repeat("r", 256), strings.Repeat("k", 4<<10), strings.Repeat("x", 512<<10)))
	require.NoError(t, err)
	_, err = server.Append(s.Ctx, &kvpb.AppendRequest{RequestId: "r", Key: strings.Repeat("k", 4<<10), Value: []byte("x")})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))

	_, err = kv.New(s.Ctx, nil)
	require.ErrorIs(t, err, eldest.ErrInvalid)
}
