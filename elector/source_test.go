package elector_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Requirement 40: the elector waits for clients that are not ready yet, and the next round uses the
// new ones.
func TestRequirement40Source(t *testing.T) {
	t.Parallel()
	name, c := etcdtest.Election(t), etcdtest.Shared(t)
	first, second := c.Client(t), c.Client(t)
	var asked atomic.Int32
	ready := make(chan struct{})
	n := run(t, config(name, "n", nil, ttl(10*time.Second), func(cfg *elector.Config) { // a renewal detects the loss
		cfg.Backoff = func(int) time.Duration { return time.Millisecond }
		cfg.Source = func(ctx context.Context) (elector.Clients, error) {
			switch asked.Add(1) {
			case 1, 2:
				return elector.Clients{}, errors.New("not ready yet")
			case 3: // blocks
				select {
				case <-ready:
				case <-ctx.Done():
					return elector.Clients{}, context.Cause(ctx)
				}
				return elector.Client(first), nil
			case 4:
				return elector.Client(nil), nil // a mistake, but no reason to crash
			default:
				return elector.Client(second), nil
			}
		}
	}))
	require.Eventually(t, func() bool { return asked.Load() == 3 }, etcdtest.Patience, time.Millisecond)
	require.Equal(t, elector.Unknown, n.Status().Role())
	require.ErrorContains(t, n.Status().Reason(), "not ready yet")
	close(ready)
	l := etcdtest.Take(t, n.won, "the win")
	require.NoError(t, first.Close())
	again := etcdtest.Take(t, n.won, "the win through the second client")
	require.GreaterOrEqual(t, asked.Load(), int32(5))
	require.Greater(t, again.Token(), l.Token())
	require.Error(t, l.Err())
}

// A source that blocks ends with Run.
func TestSourceEndsWithRun(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	n := run(t, config(etcdtest.Election(t), "n", nil, func(cfg *elector.Config) {
		cfg.Source = func(ctx context.Context) (elector.Clients, error) {
			close(asked)
			<-ctx.Done()
			return elector.Clients{}, context.Cause(ctx)
		}
	}))
	etcdtest.Take(t, asked, "a question")
	require.ErrorIs(t, n.Status().Reason(), eldest.ErrNotRegistered, "it runs, and has no session yet")
	require.ErrorIs(t, n.end(t), context.Canceled)
}

// A node also leads in a namespace. The client behind the namespaced lease confirms the renewals;
// an error reports that it is missing.
func TestNamespacedClients(t *testing.T) {
	t.Parallel()
	const space = "teams/a/"
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	clients := elector.Clients{KV: namespace.NewKV(cli, space), Watcher: namespace.NewWatcher(cli, space), Lease: namespace.NewLease(cli, space)}
	refused := run(t, config(name, "n", nil, func(cfg *elector.Config) { cfg.Source = elector.Always(clients) }))
	s, err := refused.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return errors.Is(s.Reason(), eldest.ErrInvalid) })
	require.NoError(t, err)
	require.ErrorContains(t, s.Reason(), "Majority")
	clients.Majority = cli
	n := run(t, config(name, "n", nil, func(cfg *elector.Config) { cfg.Source = elector.Always(clients) }))
	l := etcdtest.Take(t, n.won, "the win")
	_, err = l.KV().Put(etcdtest.Context(t), name, "by the leader")
	require.NoError(t, err)
	for _, key := range []string{l.Key(), name} {
		found, err := cli.Get(etcdtest.Context(t), space+key)
		require.NoError(t, err)
		require.Len(t, found.Kvs, 1)
	}
}
