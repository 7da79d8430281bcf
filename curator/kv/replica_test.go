package kv_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// slow is a client whose reads each take a second of the test's clock, or fail.
type slow struct {
	clientv3.KV
	clock  *atomic.Int64
	broken atomic.Bool
	reads  atomic.Int64
}

func (s *slow) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	defer s.reads.Add(1)
	if s.broken.Load() {
		return nil, errors.New("no connection")
	}
	resp, err := s.KV.Get(ctx, key, options...)
	s.clock.Add(int64(time.Second))
	return resp, err
}

// The age of a copy is counted from the moment when the read was sent. There is no copy before the
// first answer. While etcd does not answer the copy stays as it is, and grows older.
func TestReplica(t *testing.T) {
	s := newEnv(t)
	_, server := s.leader(s.Admin)
	for _, key := range []string{"b", "a/1", "a/2"} {
		s.put(server, "r", key, "of "+key)
	}
	var clock atomic.Int64
	replica := kv.NewReplica(s.space, func() time.Duration { return time.Duration(clock.Load()) })
	_, err := replica.Age(s.Ctx)
	require.Error(t, err)
	_, err = replica.Get(s.Ctx, &kvpb.GetRequest{Key: "b"})
	require.Equal(t, codes.Unavailable, status.Code(err))
	_, err = s.list(replica, "", nil)
	require.Equal(t, codes.Unavailable, status.Code(err))

	client := &slow{KV: s.Admin, clock: &clock}
	ctx, stop := context.WithCancelCause(s.Ctx)
	followed := make(chan error, 1)
	go func() { followed <- replica.Follow(ctx, client, time.Millisecond) }()
	age := func() time.Duration {
		age, err := replica.Age(s.Ctx)
		require.NoError(t, err)
		return age
	}
	require.Eventually(t, func() bool { return client.reads.Load() > 1 }, time.Minute, time.Millisecond)
	require.GreaterOrEqual(t, age(), time.Second, "the time that the read took is not counted")
	item, err := replica.Get(s.Ctx, &kvpb.GetRequest{Key: "a/2"})
	require.NoError(t, err)
	led, err := server.Get(s.Ctx, &kvpb.GetRequest{Key: "a/2"})
	require.NoError(t, err)
	require.Equal(t, led.String(), item.String())
	_, err = replica.Get(s.Ctx, &kvpb.GetRequest{Key: "a"})
	require.Equal(t, codes.NotFound, status.Code(err))
	_, err = replica.Get(s.Ctx, &kvpb.GetRequest{})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	for _, prefix := range []string{"", "a/", "c"} {
		led, err := s.list(server, prefix, nil)
		require.NoError(t, err)
		copied, err := s.list(replica, prefix, nil)
		require.NoError(t, err)
		require.Equal(t, led, copied)
	}

	// A deletion is copied, too.
	_, err = server.Delete(s.Ctx, &kvpb.DeleteRequest{RequestId: "d", Key: "b"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := replica.Get(s.Ctx, &kvpb.GetRequest{Key: "b"})
		return status.Code(err) == codes.NotFound
	}, time.Minute, time.Millisecond)

	client.broken.Store(true)
	failed := client.reads.Load() + 2
	require.Eventually(t, func() bool { return client.reads.Load() > failed }, time.Minute, time.Millisecond)
	before := age()
	clock.Add(int64(time.Hour))
	require.Equal(t, before+time.Hour, age())
	_, err = replica.Get(s.Ctx, &kvpb.GetRequest{Key: "a/2"})
	require.NoError(t, err)

	over := errors.New("over")
	stop(over)
	require.ErrorIs(t, <-followed, over)
}
