package stream_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/stream"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func of(t *testing.T, cli *clientv3.Client, with func(*stream.Config)) *stream.Stream {
	cfg := stream.Config{
		Open: func(ctx context.Context) (pb.Watch_WatchClient, error) {
			return pb.NewWatchClient(cli.ActiveConnection()).Watch(ctx)
		},
		Revision: func(ctx context.Context) (int64, error) {
			resp, err := cli.Get(ctx, "x", clientv3.WithCountOnly())
			if err != nil {
				return 0, err
			}
			return resp.Header.Revision, nil
		},
		Check: 100 * time.Millisecond, Patience: 2 * time.Second, Backoff: retry.Jittered(5*time.Millisecond, 50*time.Millisecond),
	}
	if with != nil {
		with(&cfg)
	}
	s := stream.New(cfg)
	t.Cleanup(s.Close)
	return s
}

func take[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(time.Minute):
		t.Fatal("nothing within a minute")
	}
	return v
}

// Each change from the given revision on, once, in order. An interruption ends the watch, and
// the next one goes on from there.
func TestEveryChangeOnce(t *testing.T) {
	c := etcdtest.Shared(t)
	cli := c.Client(t)
	ctx := t.Context()
	put := func(key string) int64 {
		resp, err := cli.Put(ctx, key, "v")
		require.NoError(t, err)
		return resp.Header.Revision
	}
	key := t.Name()
	first := put(key)
	var cut atomic.Pointer[context.CancelFunc]
	s := of(t, cli, func(cfg *stream.Config) {
		open := cfg.Open
		cfg.Open = func(ctx context.Context) (pb.Watch_WatchClient, error) {
			ctx, cancel := context.WithCancel(ctx)
			cut.Store(&cancel)
			return open(ctx)
		}
	})
	changes := make(chan stream.Change, 100)
	watch := func(from int64) *stream.Watch { return s.Watch(key, from, func(c stream.Change) { changes <- c }) }
	w := watch(first)
	last := first
	require.Equal(t, first, take(t, changes).Revision)
	for n := range 20 {
		if n%3 == 0 {
			(*cut.Load())()
			require.Error(t, take(t, changes).Err)
			w = watch(last + 1)
		}
		if n%5 == 4 {
			resp, err := cli.Delete(ctx, key)
			require.NoError(t, err)
			last = resp.Header.Revision
		} else {
			last = put(key)
		}
		got := take(t, changes)
		require.NoError(t, got.Err)
		require.Equal(t, last, got.Revision)
		require.Equal(t, n%5 == 4, got.Put == nil)
	}
	w.Stop()
	put(key)
	next := make(chan stream.Change, 1)
	s.Watch(key, put(key), func(c stream.Change) { next <- c })
	take(t, next)
	require.Empty(t, changes)
}

// A watch whose past is gone ends, and says so.
func TestCompacted(t *testing.T) {
	c := etcdtest.Start(t, etcdtest.Config{})
	cli := c.Client(t)
	put := func() int64 {
		resp, err := cli.Put(t.Context(), "k", "v")
		require.NoError(t, err)
		return resp.Header.Revision
	}
	first := put()
	_, err := cli.Compact(t.Context(), put())
	require.NoError(t, err)
	changes := make(chan stream.Change, 10)
	of(t, cli, nil).Watch("k", first, func(c stream.Change) { changes <- c })
	require.ErrorIs(t, take(t, changes).Err, stream.ErrCompacted)
}

// A stream that shows nothing of what a majority has agreed on is opened anew.
func TestSilentStream(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	var opened atomic.Int32
	s := of(t, cli, func(cfg *stream.Config) {
		open := cfg.Open
		cfg.Patience = 300 * time.Millisecond
		cfg.Open = func(ctx context.Context) (pb.Watch_WatchClient, error) {
			w, err := open(ctx)
			if err == nil && opened.Add(1) == 1 {
				w = deaf{w}
			}
			return w, err
		}
	})
	resp, err := cli.Put(t.Context(), t.Name(), "v")
	require.NoError(t, err)
	changes := make(chan stream.Change, 10)
	watch := func() { s.Watch(t.Name(), resp.Header.Revision, func(c stream.Change) { changes <- c }) }
	watch()
	require.ErrorContains(t, take(t, changes).Err, "majority")
	watch()
	require.Equal(t, resp.Header.Revision, take(t, changes).Revision)
}

// deaf is a stream of which nothing arrives.
type deaf struct{ pb.Watch_WatchClient }

func (d deaf) Recv() (*pb.WatchResponse, error) {
	<-d.Context().Done()
	return nil, d.Context().Err()
}

// Thousands of watches are one stream: no goroutine and less than a KiB each.
func TestManyWatches(t *testing.T) {
	const many = 4000
	cli := etcdtest.Shared(t).Client(t)
	resp, err := cli.Put(t.Context(), "many/first", "v")
	require.NoError(t, err)
	s := of(t, cli, nil)
	seen := make(chan string, many)
	start := func(n int) {
		key := fmt.Sprintf("many/%d", n)
		s.Watch(key, resp.Header.Revision, func(stream.Change) { seen <- key })
	}
	start(0)
	before := weigh()
	for n := 1; n < many; n++ {
		start(n)
	}
	for _, n := range []int{0, 1, many / 2, many - 1} {
		key := fmt.Sprintf("many/%d", n)
		_, err := cli.Put(t.Context(), key, "v")
		require.NoError(t, err)
		require.Equal(t, key, take(t, seen))
	}
	after := weigh()
	t.Logf("%d bytes and %.3f goroutines a watch", (int64(after.HeapAlloc)-int64(before.HeapAlloc))/many, float64(after.goroutines-before.goroutines)/many)
	require.Less(t, (int64(after.HeapAlloc)-int64(before.HeapAlloc))/many, int64(1024))
	require.Less(t, after.goroutines, before.goroutines+10)
}

type weight struct {
	runtime.MemStats
	goroutines int
}

func weigh() (w weight) {
	runtime.GC()
	runtime.ReadMemStats(&w.MemStats)
	w.goroutines = runtime.NumGoroutine()
	return w
}
