package stream_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/stream"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// eachWay runs a test with links of etcd's API, and over the Watcher of a client.
func eachWay(t *testing.T, test func(t *testing.T, cli *clientv3.Client, way func(*stream.Config))) {
	cli := etcdtest.Shared(t).Client(t)
	for name, way := range map[string]func(*stream.Config){"plain": func(*stream.Config) {}, "over a Watcher": stream.Over(cli)} {
		t.Run(name, func(t *testing.T) { test(t, cli, way) })
	}
}

// of makes a stream. If first is not nil, it changes the first link.
func of(t *testing.T, cli *clientv3.Client, way func(*stream.Config), first func(stream.Link) stream.Link) (s *stream.Stream, opened *atomic.Int32) {
	cfg := stream.Config{
		Open: func(ctx context.Context, _ error) (stream.Link, error) {
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
	way(&cfg)
	open, opened := cfg.Open, new(atomic.Int32)
	cfg.Open = func(ctx context.Context, last error) (stream.Link, error) {
		l, err := open(ctx, last)
		if err == nil && opened.Add(1) == 1 && first != nil {
			l = first(l)
		}
		return l, err
	}
	s = stream.New(cfg)
	t.Cleanup(s.Close)
	return s, opened
}

func always(*stream.Config) {}

func impatient(way func(*stream.Config), patience time.Duration) func(*stream.Config) {
	return func(cfg *stream.Config) {
		way(cfg)
		cfg.Patience = patience
	}
}

func take[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	return etcdtest.Take(t, ch, "a change")
}

// Each change after the revision at which the watch begins is reported once, in order, for a key
// and for a range. An interruption ends the watch, and the next watch continues from there.
func TestEveryChangeOnce(t *testing.T) { eachWay(t, everyChangeOnce) }

func everyChangeOnce(t *testing.T, cli *clientv3.Client, way func(*stream.Config)) {
	ctx := t.Context()
	key, end := t.Name(), t.Name()+"~"
	put := func() int64 {
		resp, err := cli.Txn(ctx).Then(clientv3.OpPut(key, "v"), clientv3.OpPut(key+"/b", "v")).Commit()
		require.NoError(t, err)
		return resp.Header.Revision
	}
	first := put()
	s, _ := of(t, cli, way, nil)
	kinds := []stream.Request{{Key: key}, {Key: key, Deletions: true}, {Key: key, End: end}}
	changes := make([]chan stream.Change, len(kinds))
	watches := make([]*stream.Watch, len(kinds))
	watch := func() {
		for i, kind := range kinds {
			changes[i] = make(chan stream.Change, 100)
			watches[i] = s.Watch(kind, func(c stream.Change) { changes[i] <- c })
			require.GreaterOrEqual(t, take(t, changes[i]).Began, first)
		}
	}
	watch()
	errCut := errors.New("cut")
	for n := range 20 {
		if n%3 == 0 {
			watches[0].Interrupt(errCut)
			for i := range kinds {
				require.ErrorIs(t, take(t, changes[i]).Err, errCut)
			}
			watch()
		}
		var last int64
		want := []int{1, 0, 2}
		if n%5 == 4 {
			resp, err := cli.Delete(ctx, key)
			require.NoError(t, err)
			last, want = resp.Header.Revision, []int{1, 1, 1}
		} else {
			last = put()
		}
		for i, events := range want {
			if events == 0 {
				continue
			}
			c := take(t, changes[i])
			require.NoError(t, c.Err)
			require.GreaterOrEqual(t, c.Header.Revision, last)
			require.Len(t, c.Events, events)
			for _, e := range c.Events {
				require.Equal(t, last, e.Kv.ModRevision)
				require.Equal(t, n%5 == 4, e.Type == mvccpb.DELETE)
			}
		}
	}
	for _, w := range watches {
		w.Stop()
		w.Interrupt(errCut) // it is not on the stream any more, which continues
	}
	put()
	next := make(chan stream.Change, 10)
	s.Watch(kinds[0], func(c stream.Change) { next <- c })
	require.Positive(t, take(t, next).Began)
	put()
	take(t, next)
	for _, c := range changes {
		require.Empty(t, c)
	}
}

// A stream that does not show what a majority has committed is opened again, and so is one that
// does not put watches in place, or shows revisions that do not exist any more.
func TestSilentStream(t *testing.T) { eachWay(t, silentStream) }

func silentStream(t *testing.T, cli *clientv3.Client, way func(*stream.Config)) {
	for name, first := range map[string]func(stream.Link) stream.Link{
		"deaf":          func(l stream.Link) stream.Link { return deaf{l} },
		"deaf later":    func(l stream.Link) stream.Link { return &later{Link: l} },
		"of the future": func(l stream.Link) stream.Link { return future{l} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, opened := of(t, cli, impatient(way, 300*time.Millisecond), first)
			changes := make(chan stream.Change, 10)
			key := stream.Request{Key: t.Name()}
			for opened.Load() < 2 {
				s.Watch(key, func(c stream.Change) { changes <- c })
				for c := take(t, changes); c.Err == nil && opened.Load() < 2; c = take(t, changes) {
					require.Positive(t, c.Began)
				}
			}
			s.Watch(key, func(c stream.Change) { changes <- c })
			for take(t, changes).Began == 0 {
			}
			resp, err := cli.Put(t.Context(), t.Name(), "v")
			require.NoError(t, err)
			require.Equal(t, resp.Header.Revision, take(t, changes).Events[0].Kv.ModRevision)
		})
	}
}

// A watch from a future revision, that of the next write, is no reason to treat the stream as
// broken. A stream whose watches are all checked otherwise is not checked.
func TestQuietEtcdIsNotSilent(t *testing.T) {
	cli := etcdtest.Start(t, etcdtest.Config{}).Client(t)
	resp, err := cli.Put(t.Context(), t.Name(), "v")
	require.NoError(t, err)
	changes := make(chan stream.Change, 10)
	for _, way := range []func(*stream.Config){always, stream.Over(cli)} {
		for _, r := range []stream.Request{
			{Key: t.Name(), From: resp.Header.Revision + 1},
			{Key: t.Name(), Checked: true},
		} {
			s, _ := of(t, cli, impatient(func(cfg *stream.Config) {
				way(cfg)
				ask := cfg.Revision
				cfg.Revision = func(ctx context.Context, key string) (int64, error) {
					require.False(t, r.Checked)
					return ask(ctx, key)
				}
			}, 2*time.Second), nil) // for a busy machine
			s.Watch(r, func(c stream.Change) { changes <- c })
			require.Positive(t, take(t, changes).Began)
		}
	}
	select {
	case c := <-changes:
		t.Fatalf("it ended: %v", c.Err)
	case <-time.After(3 * time.Second):
	}
}

// expired is a stream whose token has expired: etcd refuses new watches on it.
type expired struct{ stream.Link }

func (e expired) Recv() (*pb.WatchResponse, error) {
	resp, err := e.Link.Recv()
	if err == nil && resp.Created {
		resp.WatchId, resp.Canceled, resp.CancelReason = -1, true, rpctypes.ErrGRPCInvalidAuthToken.Error()
	}
	return resp, err
}

// A stream keeps the token with which it was opened. After the token has expired, all watches
// continue on a new stream.
func TestExpiredToken(t *testing.T) { eachWay(t, expiredToken) }

func expiredToken(t *testing.T, cli *clientv3.Client, way func(*stream.Config)) {
	s, _ := of(t, cli, way, func(l stream.Link) stream.Link { return expired{l} })
	first, second := make(chan stream.Change, 10), make(chan stream.Change, 10)
	s.Watch(stream.Request{Key: "k"}, func(c stream.Change) { first <- c })
	s.Watch(stream.Request{Key: "k2"}, func(c stream.Change) { second <- c })
	var refused *stream.RefusedError
	for _, told := range []chan stream.Change{first, second} {
		err := take(t, told).Err
		require.ErrorIs(t, err, rpctypes.ErrInvalidAuthToken)
		require.NotErrorAs(t, err, &refused, "it is the stream that is refused")
	}
	s.Watch(stream.Request{Key: "k"}, func(c stream.Change) { first <- c })
	require.Positive(t, take(t, first).Began)
}

// The refusal of one watch ends only that watch.
func TestRefusedWatch(t *testing.T) {
	eachWay(t, func(t *testing.T, cli *clientv3.Client, way func(*stream.Config)) {
		resp, err := cli.Put(t.Context(), t.Name(), "v")
		require.NoError(t, err)
		_, err = cli.Put(t.Context(), t.Name(), "v")
		require.NoError(t, err)
		_, err = cli.Compact(t.Context(), resp.Header.Revision+1)
		require.NoError(t, err)
		s, opened := of(t, cli, way, nil)
		good, bad := make(chan stream.Change, 10), make(chan stream.Change, 10)
		s.Watch(stream.Request{Key: t.Name()}, func(c stream.Change) { good <- c })
		require.Positive(t, take(t, good).Began)
		s.Watch(stream.Request{Key: t.Name(), From: resp.Header.Revision}, func(c stream.Change) { bad <- c })
		var refused *stream.RefusedError
		c := take(t, bad)
		if c.Began > 0 { // it is put in place, and then ended
			c = take(t, bad)
		}
		require.ErrorAs(t, c.Err, &refused)
		require.ErrorIs(t, c.Err, rpctypes.ErrCompacted)
		_, err = cli.Put(t.Context(), t.Name(), "v")
		require.NoError(t, err)
		require.Len(t, take(t, good).Events, 1)
		require.EqualValues(t, 1, opened.Load())
	})
}

// proxied is a stream through etcd's gRPC proxy, which gives watches IDs of its own choice.
type proxied struct{ stream.Link }

func (p proxied) Send(r *pb.WatchRequest) error {
	if c := r.GetCancelRequest(); c != nil {
		c.WatchId -= 7
	}
	return p.Link.Send(r)
}

func (p proxied) Recv() (*pb.WatchResponse, error) {
	resp, err := p.Link.Recv()
	if err == nil && resp.WatchId >= 0 {
		resp.WatchId += 7
	}
	return resp, err
}

// A change of a key is reported to the watches of that key, whatever their IDs. A watch that is
// stopped before it is in place is cancelled then.
func TestIDsOfAProxy(t *testing.T) {
	eachWay(t, func(t *testing.T, cli *clientv3.Client, way func(*stream.Config)) {
		s, _ := of(t, cli, way, func(l stream.Link) stream.Link { return proxied{l} })
		changes := make([]chan stream.Change, 3)
		watches := make([]*stream.Watch, len(changes))
		for i := range changes {
			changes[i] = make(chan stream.Change, 10)
			watches[i] = s.Watch(stream.Request{Key: fmt.Sprint(t.Name(), i)}, func(c stream.Change) { changes[i] <- c })
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
		require.Equal(t, fmt.Sprint(t.Name(), 2), string(take(t, changes[2]).Events[0].Kv.Key))
		require.Empty(t, changes[1])
	})
}

// later is a stream on which nothing arrives after the first message.
type later struct {
	stream.Link
	over bool
}

func (l *later) Recv() (*pb.WatchResponse, error) {
	if l.over {
		return deaf{l.Link}.Recv()
	}
	l.over = true
	return l.Link.Recv()
}

// future is a stream from a member with revisions that do not exist, like that of an etcd that was
// restored from a backup.
type future struct{ stream.Link }

func (f future) Recv() (*pb.WatchResponse, error) {
	resp, err := f.Link.Recv()
	if err == nil && resp.Header != nil {
		resp.Header = &pb.ResponseHeader{Revision: resp.Header.Revision + 1000} // the old one may be shared
	}
	return resp, err
}

// deaf is a stream on which nothing arrives but its end.
type deaf struct{ stream.Link }

func (d deaf) Recv() (*pb.WatchResponse, error) {
	for {
		if resp, err := d.Link.Recv(); resp == nil {
			return nil, err
		}
	}
}

// Thousands of watches share one stream: no goroutine and less than a KiB each.
func TestManyWatches(t *testing.T) {
	const many = 4000
	cli := etcdtest.Shared(t).Client(t)
	s, _ := of(t, cli, always, nil)
	began, seen := make(chan string, many), make(chan string, many)
	start := func(n int) {
		key := fmt.Sprintf("many/%d", n)
		s.Watch(stream.Request{Key: key}, func(c stream.Change) {
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
