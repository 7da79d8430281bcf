package truth

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/instant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// recorded is a recorder of nobody, and what it told.
func recorded() (*Recorder, *[]oracle.Change) {
	var told []oracle.Change
	return Start(nil, instant.Begin(), "data", func(c oracle.Change) error {
		told = append(told, c)
		return nil
	}), &told
}

func put(rev, create int64, key, value string) *clientv3.Event {
	return &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: rev, CreateRevision: create, Lease: 9}}
}

func del(rev int64, key string) *clientv3.Event {
	return &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: rev}}
}

// Two members tell of the same, one later than the other and in other portions.
func TestEachRevisionOnce(t *testing.T) {
	r, told := recorded()
	defer r.Stop()
	both := []*clientv3.Event{put(4, 4, "a", "x"), put(4, 4, "b", "x")} // one transaction
	r.take([]*clientv3.Event{put(2, 2, "a", "x"), del(3, "a")})
	r.take(append([]*clientv3.Event{put(2, 2, "a", "x"), del(3, "a")}, both...))
	r.take(both)
	r.take([]*clientv3.Event{put(5, 5, "data", "7 p1-1"), put(6, 5, "data", "7 p1-2"), put(7, 5, "data", "by hand")})
	var revs []int64
	for _, c := range *told {
		revs = append(revs, c.Rev)
		require.Positive(t, c.At)
	}
	require.Equal(t, []int64{2, 3, 4, 4, 5, 6, 7}, revs)
	removed := (*told)[1]
	require.True(t, removed.Deleted)
	require.EqualValues(t, 2, removed.Create, "of the key that is gone")
	require.EqualValues(t, 9, (*told)[0].Lease)
	require.Equal(t, 2, r.Writes(7))
	require.NoError(t, r.Reached(t.Context(), 7))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.Reached(ctx, 8), context.DeadlineExceeded)
}

func TestGap(t *testing.T) {
	r, _ := recorded()
	defer r.Stop()
	r.take([]*clientv3.Event{put(2, 2, "a", "x")})
	r.compacted(3) // nothing is missing
	require.NoError(t, r.Err())
	r.compacted(4)
	require.ErrorIs(t, r.Err(), ErrGap)
	require.ErrorIs(t, r.Reached(t.Context(), 9), ErrGap)
}

func TestRecordThatCannotBeWritten(t *testing.T) {
	broken := errors.New("no space")
	r := Start(nil, instant.Begin(), "data", func(oracle.Change) error { return broken })
	defer r.Stop()
	r.take([]*clientv3.Event{put(2, 2, "a", "x")})
	require.ErrorIs(t, r.Err(), broken)
}

// Members are killed, restarted and replaced, history is compacted, and nothing is missing.
func TestNothingIsMissed(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3, Replaceable: true})
	var clients []*clientv3.Client
	for i := range c.Size() {
		clients = append(clients, c.ClientTo(t, i))
	}
	told := make(chan int64, 1000)
	r := Start(clients, instant.Begin(), "data", func(change oracle.Change) error {
		told <- change.Rev
		return nil
	})
	defer r.Stop()
	cli := c.Client(t)
	write := func() {
		for range 10 {
			// A member that goes may take a request with it, done or not.
			for _, err := cli.Put(ctx, "data", "1 x"); err != nil; _, err = cli.Put(ctx, "data", "1 x") {
				require.NoError(t, ctx.Err())
			}
		}
	}
	write()
	require.NoError(t, c.Member(0).Kill())
	write()
	rev, err := c.Revision(ctx)
	require.NoError(t, err)
	require.NoError(t, r.Reached(ctx, rev))
	_, err = c.Compact(ctx)
	require.NoError(t, err)
	write()
	require.NoError(t, c.Member(0).Restart(ctx))
	require.NoError(t, c.Replace(ctx, 1))
	write()
	rev, err = c.Revision(ctx)
	require.NoError(t, err)
	require.NoError(t, r.Reached(ctx, rev))
	require.NoError(t, r.Err())
	got, err := cli.Get(ctx, "data")
	require.NoError(t, err)
	require.GreaterOrEqual(t, got.Kvs[0].Version, int64(40))
	require.EqualValues(t, got.Kvs[0].Version, r.Writes(1))
	require.Len(t, told, r.Writes(1))
	for want := int64(2); want <= rev; want++ {
		require.Equal(t, want, <-told)
	}
}
