package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

func put(rev, create int64, key, value string) *clientv3.Event {
	return &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: rev, CreateRevision: create, Lease: 9}}
}

func del(rev int64, key string) *clientv3.Event {
	return &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: rev}}
}

// Two members report the same changes, one later than the other and in other portions.
func TestEachRevisionOnce(t *testing.T) {
	r := newRecord(nil, func() time.Duration { return 1 })
	defer r.end()
	both := []*clientv3.Event{put(4, 4, "a", "x"), put(4, 4, "b", "x")} // one transaction
	r.take([]*clientv3.Event{put(2, 2, "a", "x"), del(3, "a")})
	r.take(append([]*clientv3.Event{put(2, 2, "a", "x"), del(3, "a")}, both...))
	r.take(both)
	r.take([]*clientv3.Event{put(5, 5, dataKey, "7 p1-1"), put(6, 5, dataKey, "8 p1-2"), put(7, 5, dataKey, "by hand")})
	var revs []int64
	for _, c := range r.changes {
		revs = append(revs, c.Rev)
		require.Positive(t, c.At)
	}
	require.Equal(t, []int64{2, 3, 4, 4, 5, 6, 7}, revs)
	require.Equal(t, oracle.Change{Rev: 3, At: 1, Key: "a", Deleted: true, Create: 2}, r.changes[1], "of the key that is gone")
	require.EqualValues(t, 9, r.changes[0].Lease)
	require.True(t, r.wrote(7, 4))
	require.False(t, r.wrote(7, 5), "before")
	require.False(t, r.wrote(9, 4))
	require.NoError(t, r.reached(t.Context(), 7))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.reached(ctx, 8), context.DeadlineExceeded)

	r.compacted(8) // nothing is missing
	require.NoError(t, r.err())
	for _, missing := range []func(*record){
		func(r *record) { r.compacted(9) },
		func(r *record) { r.take([]*clientv3.Event{put(9, 5, dataKey, "7 p1-3")}) },
	} {
		gap := newRecord(nil, r.now)
		defer gap.end()
		gap.rev = 7
		missing(gap)
		require.ErrorIs(t, gap.err(), errGap)
		require.ErrorIs(t, gap.reached(t.Context(), 9), errGap)
	}
}

// The value of a registration is the candidate's name; the value of a write contains it.
func TestRegistrationIsNoWrite(t *testing.T) {
	match := registrationOf("p3.2")
	require.True(t, match([]byte("\x0achaos/5f\x12\x04p3.2\x18\x07")))
	require.False(t, match([]byte("\x0achaos-data\x12\x0a17 p3.2-9")))
	require.False(t, match([]byte("\x0achaos-data")))
}
