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
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
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
		Revision: func(ctx context.Context, key string) (int64, error) {
			resp, err := cli.Get(ctx, key, clientv3.WithCountOnly())
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

// Each change after the revision at which the watch begins, once, in order. An interruption ends
// the watch, and the next one goes on from there.
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
	changes, deletions := make(chan stream.Change, 100), make(chan stream.Change, 100)
	watch := func() (w *stream.Watch) {
		w = s.Watch(key, true, 0, func(c stream.Change) { changes <- c })
		s.Watch(key, false, 0, func(c stream.Change) { deletions <- c })
		require.GreaterOrEqual(t, take(t, changes).Began, first)
		require.GreaterOrEqual(t, take(t, deletions).Began, first)
		return w
	}
	w := watch()
	for n := range 20 {
		if n%3 == 0 {
			(*cut.Load())()
			require.Error(t, take(t, changes).Err)
			require.Error(t, take(t, deletions).Err)
			w = watch()
		}
		var last int64
		if n%5 == 4 {
			resp, err := cli.Delete(ctx, key)
			require.NoError(t, err)
			last = resp.Header.Revision
			require.Equal(t, last, take(t, deletions).Revision)
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
	next := make(chan stream.Change, 10)
	s.Watch(key, true, 0, func(c stream.Change) { next <- c })
	require.Positive(t, take(t, next).Began)
	put(key)
	take(t, next)
	require.Empty(t, changes)
	require.Empty(t, deletions)
}

// A stream that shows nothing of what a majority has agreed on is opened anew, and so is one that
// does not put watches in place, or says what is not true any more.
func TestSilentStream(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	for name, first := range map[string]func(pb.Watch_WatchClient) pb.Watch_WatchClient{
		"deaf":          func(w pb.Watch_WatchClient) pb.Watch_WatchClient { return deaf{w} },
		"deaf later":    func(w pb.Watch_WatchClient) pb.Watch_WatchClient { return &later{Watch_WatchClient: w} },
		"of the future": func(w pb.Watch_WatchClient) pb.Watch_WatchClient { return future{w} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opened atomic.Int32
			s := of(t, cli, func(cfg *stream.Config) {
				open := cfg.Open
				cfg.Patience = 300 * time.Millisecond
				cfg.Open = func(ctx context.Context) (pb.Watch_WatchClient, error) {
					w, err := open(ctx)
					if err == nil && opened.Add(1) == 1 {
						w = first(w)
					}
					return w, err
				}
			})
			changes := make(chan stream.Change, 10)
			for opened.Load() < 2 {
				s.Watch(t.Name(), true, 0, func(c stream.Change) { changes <- c })
				for c := take(t, changes); c.Err == nil && opened.Load() < 2; c = take(t, changes) {
					require.Positive(t, c.Began)
				}
			}
			s.Watch(t.Name(), true, 0, func(c stream.Change) { changes <- c })
			for take(t, changes).Began == 0 {
			}
			resp, err := cli.Put(t.Context(), t.Name(), "v")
			require.NoError(t, err)
			require.Equal(t, resp.Header.Revision, take(t, changes).Revision)
		})
	}
}

// A watch from a revision that is not there yet, that of the next write, is no reason to take the
// stream for silent.
func TestQuietEtcdIsNotSilent(t *testing.T) {
	cli := etcdtest.Start(t, etcdtest.Config{}).Client(t)
	s := of(t, cli, func(cfg *stream.Config) { cfg.Patience = 500 * time.Millisecond })
	resp, err := cli.Put(t.Context(), t.Name(), "v")
	require.NoError(t, err)
	changes := make(chan stream.Change, 10)
	s.Watch(t.Name(), true, resp.Header.Revision+1, func(c stream.Change) { changes <- c })
	require.Positive(t, take(t, changes).Began)
	select {
	case c := <-changes:
		t.Fatalf("it ended: %v", c.Err)
	case <-time.After(2 * time.Second):
	}
}

// expired is a stream whose token has expired: etcd refuses what is added to it.
type expired struct{ pb.Watch_WatchClient }

func (e expired) Recv() (*pb.WatchResponse, error) {
	resp, err := e.Watch_WatchClient.Recv()
	if err == nil && resp.Created {
		resp.WatchId, resp.Canceled, resp.CancelReason = -1, true, rpctypes.ErrGRPCInvalidAuthToken.Error()
	}
	return resp, err
}

// A stream keeps the token with which it was opened. Once that has expired, all watches are told to go
// on on a new one.
func TestExpiredToken(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	var opened atomic.Int32
	s := of(t, cli, func(cfg *stream.Config) {
		open := cfg.Open
		cfg.Open = func(ctx context.Context) (pb.Watch_WatchClient, error) {
			w, err := open(ctx)
			if err == nil && opened.Add(1) == 1 {
				w = expired{w}
			}
			return w, err
		}
	})
	first, second := make(chan stream.Change, 10), make(chan stream.Change, 10)
	s.Watch("k", true, 0, func(c stream.Change) { first <- c })
	s.Watch("k2", true, 0, func(c stream.Change) { second <- c })
	var refused *stream.RefusedError
	for _, told := range []chan stream.Change{first, second} {
		err := take(t, told).Err
		require.ErrorIs(t, err, rpctypes.ErrInvalidAuthToken)
		require.NotErrorAs(t, err, &refused, "it is the stream that is refused")
	}
	s.Watch("k", true, 0, func(c stream.Change) { first <- c })
	require.Positive(t, take(t, first).Began)
}

// proxied is a stream through etcd's gRPC proxy, which gives watches IDs of its own choice.
type proxied struct{ pb.Watch_WatchClient }

func (p proxied) Send(r *pb.WatchRequest) error {
	if c := r.GetCancelRequest(); c != nil {
		c.WatchId -= 7
	}
	return p.Watch_WatchClient.Send(r)
}

func (p proxied) Recv() (*pb.WatchResponse, error) {
	resp, err := p.Watch_WatchClient.Recv()
	if err == nil && resp.WatchId >= 0 {
		resp.WatchId += 7
	}
	return resp, err
}

// What happens to a key is told to those who watch it, whatever IDs watches have; one that is stopped
// before it is in place is cancelled then.
func TestIDsOfAProxy(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	s := of(t, cli, func(cfg *stream.Config) {
		open := cfg.Open
		cfg.Open = func(ctx context.Context) (pb.Watch_WatchClient, error) {
			w, err := open(ctx)
			return proxied{w}, err
		}
	})
	changes := make([]chan stream.Change, 3)
	watches := make([]*stream.Watch, len(changes))
	for i := range changes {
		changes[i] = make(chan stream.Change, 10)
		watches[i] = s.Watch(fmt.Sprint(t.Name(), i), true, 0, func(c stream.Change) { changes[i] <- c })
		if i == 0 {
			watches[i].Stop()
			continue
		}
		require.Positive(t, take(t, changes[i]).Began)
	}
	watches[1].Stop()
	for _, i := range []int{0, 1, 2} {
		_, err := cli.Put(t.Context(), fmt.Sprint(t.Name(), i), "v")
		require.NoError(t, err)
	}
	require.Equal(t, fmt.Sprint(t.Name(), 2), string(take(t, changes[2]).Put.Key))
	require.Empty(t, changes[1])
}

// later is a stream of which nothing arrives after the first message.
type later struct {
	pb.Watch_WatchClient
	heard bool
}

func (l *later) Recv() (*pb.WatchResponse, error) {
	if l.heard {
		return deaf{l.Watch_WatchClient}.Recv()
	}
	l.heard = true
	return l.Watch_WatchClient.Recv()
}

// future is a stream from a member that knows more than there is, as one does whose etcd was
// restored from a backup.
type future struct{ pb.Watch_WatchClient }

func (f future) Recv() (*pb.WatchResponse, error) {
	resp, err := f.Watch_WatchClient.Recv()
	if err == nil {
		resp.Header.Revision += 1000
	}
	return resp, err
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
	s := of(t, cli, nil)
	began, seen := make(chan string, many), make(chan string, many)
	start := func(n int) {
		key := fmt.Sprintf("many/%d", n)
		s.Watch(key, true, 0, func(c stream.Change) {
			if c.Began > 0 {
				began <- key
			} else {
				seen <- key
			}
		})
	}
	start(0)
	take(t, began)
	before := weigh()
	for n := 1; n < many; n++ {
		start(n)
		take(t, began)
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
