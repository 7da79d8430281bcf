package observe_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// The only member is killed and comes back with its data.
func TestMemberRestart(t *testing.T) {
	t.Parallel()
	s := newStageOn(t, etcdtest.Start(t, etcdtest.Config{}))
	o := s.observer(quick)
	sub := o.Subscribe()
	s.put(1, "before")
	s.led(sub, 1, "before")
	require.NoError(t, s.Cluster.Member(0).Kill())
	state := s.is(sub, eldest.Unknown)
	require.Error(t, state.Reason)
	require.NoError(t, s.Cluster.Restart(s.Ctx, 0))
	s.led(sub, 1, "before")
	etcdtest.Reachable(t, s.Admin)
	s.put(1, "after")
	s.led(sub, 1, "after")
}

// Close does not wait for an unavailable etcd.
func TestCloseWhileEtcdIsSilent(t *testing.T) {
	s := newStage(t)
	host := s.Cluster.Host(t)
	cli := host.Client(t)
	o := s.observer(func(cfg *observe.Config) {
		cfg.KV, cfg.Watcher, cfg.WatchCheck, cfg.Timeout = cli, cli, 20*time.Millisecond, time.Minute
	})
	sub := o.Subscribe()
	require.Equal(t, eldest.Nobody, s.next(sub).Kind)
	host.Cut()
	before := host.Stats().Dropped.Inbound
	require.Eventually(t, func() bool { return host.Stats().Dropped.Inbound > before }, 2*etcdtest.Patience, time.Millisecond, "a recheck is under way")
	closed := make(chan struct{})
	go func() { o.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		require.Fail(t, "Close waits for the recheck")
	}
}

// A closed client ends the observer, after a last state.
func TestClosedClient(t *testing.T) {
	s := newStage(t)
	cli := s.Cluster.Client(t)
	o := s.observer(func(cfg *observe.Config) { cfg.KV, cfg.Watcher = cli, cli })
	sub := o.Subscribe()
	s.put(1, "v")
	s.led(sub, 1, "v")
	require.NoError(t, cli.Close())
	for {
		state, err := sub.Next(s.Ctx)
		if err != nil {
			require.ErrorIs(t, err, eldest.ErrClosed)
			break
		}
		require.Equal(t, eldest.Unknown, state.Kind)
	}
	require.Equal(t, eldest.Unknown, o.State().Kind)
}

// A watch that a proxy cancels is no closed client, although it looks like one if the client is wrapped.
func TestCanceledWatchIsReplaced(t *testing.T) {
	s := newStage(t)
	w := &canceledAtFirst{Watcher: namespace.NewWatcher(s.Client, "/in/")}
	o := s.observer(func(cfg *observe.Config) { cfg.KV, cfg.Watcher = namespace.NewKV(s.Client, "/in/"), w })
	sub := o.Subscribe()
	for w.opened.Load() < 2 {
		s.next(sub)
	}
	key := "/in/" + s.key(1)
	s.Put(key, "v")
	s.led(sub, 1, "v")
	s.Remove(key)
}

// canceledAtFirst opens a first watch that is canceled at once.
type canceledAtFirst struct {
	clientv3.Watcher
	opened atomic.Int64
}

func (w *canceledAtFirst) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if w.opened.Add(1) > 1 {
		return w.Watcher.Watch(ctx, key, opts...)
	}
	return clientv3.NewWatchFromWatchClient(canceling{}, nil).Watch(ctx, key, opts...)
}

// canceling is a connection whose streams are canceled.
type canceling struct{}

func (canceling) Watch(context.Context, ...grpc.CallOption) (etcdserverpb.Watch_WatchClient, error) {
	return nil, status.Error(codes.Canceled, "by a proxy")
}

// A watch that was confirmed and receives no events is found by a liveness check, and replaced.
func TestDeafWatchIsReplaced(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	w := &deafAtFirst{Watcher: s.Client}
	read := make(chan struct{})
	o := s.observer(listening, func(cfg *observe.Config) {
		cfg.Watcher = w
		// The next watch waits until the previous state was read; otherwise it would replace that
		// state.
		cfg.Backoff = func(int) time.Duration { <-read; return 0 }
	})
	release := sync.OnceFunc(func() { close(read) })
	t.Cleanup(release)
	sub := o.Subscribe()
	require.Equal(t, eldest.Nobody, s.next(sub).Kind)
	s.put(1, "v")
	s.is(sub, eldest.Unknown)
	release()
	s.led(sub, 1, "v")
	require.Equal(t, int64(2), w.opened.Load())
	s.put(1, "w")
	s.led(sub, 1, "w")
}

// A busy election is not taken for a watch that receives nothing, although the response of each
// liveness check is newer than the stream.
func TestBusyElectionIsKnown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	// A contradicting check waits for another second: no busy machine delays the stream for that
	// long.
	o := s.observer(func(cfg *observe.Config) {
		cfg.Watcher, cfg.WatchCheck = lateWatcher{s.Client}, time.Second
		cfg.Hooks.Interrupted = func(e observe.InterruptedEvent) { t.Error(e.Reason) }
	})
	sub := o.Subscribe()
	s.is(sub, eldest.Nobody)
	for s.Rec.Count("Range") < 4 { // the snapshot, and three checks
		s.put(1, "v")
	}
	s.put(1, "last")
	s.led(sub, 1, "last")
}

// lateWatcher delivers everything with a short delay.
type lateWatcher struct{ clientv3.Watcher }

func (w lateWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	type message struct {
		clientv3.WatchResponse
		due time.Time
	}
	under := make(chan message, 100_000)
	go func() {
		defer close(under)
		for resp := range w.Watcher.Watch(ctx, key, opts...) {
			under <- message{resp, time.Now().Add(20 * time.Millisecond)}
		}
	}()
	late := make(chan clientv3.WatchResponse)
	go func() {
		defer close(late)
		for m := range under {
			time.Sleep(time.Until(m.due))
			select {
			case late <- m.WatchResponse:
			case <-ctx.Done():
			}
		}
	}()
	return late
}

// deafAtFirst opens a first watch that is confirmed and then receives nothing.
type deafAtFirst struct {
	clientv3.Watcher
	opened atomic.Int64
}

func (w *deafAtFirst) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if w.opened.Add(1) > 1 {
		return w.Watcher.Watch(ctx, key, opts...)
	}
	return etcdtest.Deaf(w.Watcher).Watch(ctx, key, opts...)
}

// A stream that is cut in one direction only: events are lost, the connection remains.
func TestOneWayCut(t *testing.T) {
	t.Parallel()
	for name, direction := range map[string]etcdtest.Direction{"requests": etcdtest.Inbound, "answers": etcdtest.Outbound} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			host := s.Cluster.Host(t)
			cli := host.Client(t)
			o := s.observer(quick, func(cfg *observe.Config) { cfg.KV, cfg.Watcher = cli, cli })
			sub := o.Subscribe()
			s.put(1, "v")
			s.led(sub, 1, "v")
			host.Drop(direction)
			s.is(sub, eldest.Unknown)
			s.put(1, "w")
			host.Mend()
			s.led(sub, 1, "w")
		})
	}
}
