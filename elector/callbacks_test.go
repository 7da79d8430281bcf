package elector_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// A hook of the observer that blocks delays neither a win nor the end of Run.
func TestForeignHookThatBlocks(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	foreign := name + "/foreign"
	require.NoError(t, etcdtest.Err(cli.Put(etcdtest.Context(t), foreign, "")))
	t.Cleanup(func() { _, _ = cli.Delete(etcdtest.Context(t), foreign) })
	_, other := orphan(t, cli, name, identity.Identity{NodeID: "other"})
	called, release := make(chan struct{}, 1), make(chan struct{})
	t.Cleanup(func() { close(release) })
	n := run(t, config(name, "n", cli, func(cfg *elector.Config) {
		cfg.Leave = 100 * time.Millisecond
		cfg.Observer.Foreign = func(string) {
			select {
			case called <- struct{}{}:
			default: // called again: the observer has read the election again
			}
			<-release
		}
	}))
	etcdtest.Take(t, called, "the hook")
	require.NoError(t, etcdtest.Err(cli.Delete(etcdtest.Context(t), other)))
	etcdtest.Take(t, n.won, "the win")
	require.ErrorIs(t, n.end(t), context.Canceled)
}

// An observer that ended, because etcd refused a request or seemed to, is replaced: the node is
// still in the queue, so it must follow the leader.
func TestBlindFollowerSeesAgain(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	leader := run(t, config(name, "leader", cli))
	etcdtest.Take(t, leader.won, "the win")
	kv := &flaky{KV: cli}
	var log etcdtest.Paper // has each status; a watch skips those that were replaced
	n := run(t, config(name, "n", cli, func(cfg *elector.Config) {
		cfg.Source = elector.Always(elector.Clients{KV: kv, Watcher: cli, Lease: cli})
		cfg.Candidate.WatchCheck = -1 // so that the observer receives the error
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	}))
	n.follows(t, "leader")
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "role=following") }, etcdtest.Patience, time.Millisecond)
	before := len(log.String())
	kv.armed.Store(true)
	require.Eventually(t, func() bool {
		_, after, blind := strings.Cut(log.String()[before:], "role=unknown")
		return blind && strings.Contains(after, "role=following") && !kv.armed.Load()
	}, etcdtest.Patience, time.Millisecond, "it is refused, blind, and then it sees")
	n.follows(t, "leader")
	require.Len(t, queueOf(t, cli, name), 2)
}

// flaky fails one read with an error that looks like that of a closed client.
type flaky struct {
	clientv3.KV
	armed atomic.Bool
}

func (f *flaky) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if op.IsGet() && f.armed.CompareAndSwap(true, false) {
		return clientv3.OpResponse{}, status.Error(codes.Canceled, "somebody on the way went away")
	}
	return f.KV.Do(ctx, op)
}

// If no watch ever opens but requests succeed, a waiter wins by means of reads; it does not block
// the queue behind it.
func TestWithoutWatches(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	first := run(t, config(name, "first", cli))
	etcdtest.Take(t, first.won, "the win")
	deaf := run(t, config(name, "deaf", cli, func(cfg *elector.Config) {
		cfg.Source = elector.Always(elector.Clients{KV: cli, Watcher: noWatcher{cli}, Lease: cli})
	}))
	require.Eventually(t, func() bool { return len(queueOf(t, cli, name)) == 2 }, etcdtest.Patience, time.Millisecond)
	require.Error(t, first.end(t))
	etcdtest.Take(t, deaf.won, "the win of who sees no events")
}

// noWatcher never confirms a watch.
type noWatcher struct{ clientv3.Watcher }

func (noWatcher) Watch(ctx context.Context, _ string, _ ...clientv3.OpOption) clientv3.WatchChan {
	events := make(chan clientv3.WatchResponse)
	context.AfterFunc(ctx, func() { close(events) })
	return events
}

// A hook of the observer that blocks does not delay the end of Run for ever, also after Withdraw.
func TestHookThatBlocksAfterWithdraw(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	foreign := name + "/foreign"
	called, release := make(chan struct{}, 1024), make(chan struct{})
	n := run(t, config(name, "n", cli, func(cfg *elector.Config) {
		cfg.Leave = 100 * time.Millisecond
		cfg.Observer.Foreign = func(string) { called <- struct{}{}; <-release }
	}))
	etcdtest.Take(t, n.won, "the win")
	require.NoError(t, n.Withdraw(etcdtest.Context(t), nil))
	require.NoError(t, etcdtest.Err(cli.Put(etcdtest.Context(t), foreign, "")))
	t.Cleanup(func() { _, _ = cli.Delete(etcdtest.Context(t), foreign) })
	etcdtest.Take(t, called, "the hook")
	n.stop()
	select {
	case err := <-n.done:
		n.done <- err
		close(release)
	case <-time.After(etcdtest.Patience):
		close(release)
		t.Fatal("Run waits for the hook")
	}
}
