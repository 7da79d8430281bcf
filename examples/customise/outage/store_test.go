package outage_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/examples/customise/outage"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Requirement 33: everything that is fixed in etcd's concurrency package can be changed.
func TestMain(m *testing.M) { etcdtest.Main(m) }

// node runs a node with a store until stop is called.
func node(t *testing.T, client *clientv3.Client, id string, store *outage.Store) (stop func()) {
	t.Helper()
	e, err := elector.New(elector.Config{
		Election: t.Name(), NodeID: id, Source: elector.Always(elector.Client(client)), Session: lease.Options{TTL: 5 * time.Second},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx, store.Lead)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// until waits until a reading of a store is as wanted.
func until(t *testing.T, store *outage.Store, text string, fresh bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		r, err := store.Read()
		return err == nil && r.Text == text && r.Fresh == fresh
	}, time.Minute, time.Millisecond)
}

// unwritten returns a key of the test's own, without a value.
func unwritten(t *testing.T) string {
	t.Helper()
	key := t.Name() + "-value"
	_, err := etcdtest.Shared(t).Client(t).Delete(t.Context(), key)
	require.NoError(t, err)
	return key
}

// The leader is partitioned. It continues to serve reads, with their age; it writes nothing; a
// Fresh reading never contradicts the writes of another leader; and when it leads again it has the
// new value.
func TestReadOnly(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cluster := etcdtest.Shared(t)
	host := cluster.Host(t)
	key := unwritten(t)
	a, b := outage.New(key, outage.ReadOnly), outage.New(key, outage.Stop)
	_, err := a.Read()
	require.ErrorIs(t, err, eldest.ErrNotLeading, "it never led and knows nothing")
	stopA := node(t, host.Client(t), "a", a)
	until(t, a, "", true)
	stopB := node(t, cluster.Client(t), "b", b)
	require.NoError(t, a.Write(ctx, "one"))
	until(t, a, "one", true)

	// All the while a goroutine reads from a.
	var mu sync.Mutex
	var lastFresh time.Time // when the last fresh reading of "one" began
	reading, end := context.WithCancel(ctx)
	var reader sync.WaitGroup
	reader.Go(func() {
		for reading.Err() == nil {
			began := time.Now()
			if r, err := a.Read(); err == nil && r.Fresh && r.Text == "one" {
				mu.Lock()
				lastFresh = began
				mu.Unlock()
			}
			time.Sleep(time.Millisecond / 2)
		}
	})
	host.Cut()
	until(t, a, "one", false)
	require.ErrorIs(t, a.Write(ctx, "late"), eldest.ErrNotLeading)
	until(t, b, "one", true)
	require.NoError(t, b.Write(ctx, "two"))
	written := time.Now()
	r, err := a.Read()
	require.NoError(t, err)
	require.Equal(t, "one", r.Text, "a does not know")
	require.False(t, r.Fresh)
	require.True(t, r.AsOf.Before(written))
	end()
	reader.Wait()
	require.True(t, lastFresh.Before(written), "fresh, and not the newest")

	host.Mend()
	stopB()
	_, err = b.Read()
	require.ErrorIs(t, err, eldest.ErrNotLeading, "a strict one does not read on")
	until(t, a, "two", true)
	stopA()
	until(t, a, "two", false)
}

// A write whose reply is lost ends the tenure, and the next tenure reads its outcome.
func TestUnknownOutcome(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	host := etcdtest.Shared(t).Host(t)
	key := unwritten(t)
	s := outage.New(key, outage.Stop)
	node(t, host.Client(t), "a", s)
	until(t, s, "", true)
	lost := host.SwallowNextReply(etcdtest.Containing(key))
	once, giveUp := context.WithCancel(ctx)
	go func() {
		_ = lost.Wait(ctx)
		giveUp()
	}()
	require.ErrorIs(t, s.Write(once, "perhaps"), eldest.ErrOutcomeUnknown)
	until(t, s, "perhaps", true)
}
