package memetcd_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/memetcd"
)

// inMemory runs a test in virtual time.
func inMemory(t *testing.T, test func(t *testing.T, c *clientv3.Client, l *memetcd.Link)) {
	synctest.Test(t, func(t *testing.T) {
		e := memetcd.New()
		c, l := e.Client()
		test(t, c, l)
		_ = c.Close()
		e.Close()
	})
}

// A lease expires one TTL after its last renewal, with its keys, in one revision.
func TestExpiry(t *testing.T) {
	inMemory(t, func(t *testing.T, c *clientv3.Client, _ *memetcd.Link) {
		l, err := c.Grant(t.Context(), 1)
		require.NoError(t, err)
		require.EqualValues(t, 2, l.TTL, "etcd's minimum")
		for _, key := range []string{"a", "b"} {
			require.NoError(t, etcdtest.Err(c.Put(t.Context(), key, "", clientv3.WithLease(l.ID))))
		}
		require.NoError(t, etcdtest.Err(c.Put(t.Context(), "b", ""))) // no longer bound to the lease
		time.Sleep(time.Second)
		require.NoError(t, etcdtest.Err(c.KeepAliveOnce(t.Context(), l.ID)))
		time.Sleep(2*time.Second - time.Nanosecond)
		left, err := c.Get(t.Context(), "a", clientv3.WithFromKey())
		require.NoError(t, err)
		require.Len(t, left.Kvs, 2)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		after, err := c.Get(t.Context(), "a", clientv3.WithFromKey())
		require.NoError(t, err)
		require.Len(t, after.Kvs, 1)
		require.Equal(t, left.Header.Revision+1, after.Header.Revision)
	})
}

// While KeepAlive renews a lease it exists.
func TestKeepAlive(t *testing.T) {
	inMemory(t, func(t *testing.T, c *clientv3.Client, _ *memetcd.Link) {
		l, err := c.Grant(t.Context(), 10)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		kept, err := c.KeepAlive(ctx, l.ID)
		require.NoError(t, err)
		go func() {
			for range kept {
			}
		}()
		exists := func() bool {
			left, err := c.TimeToLive(t.Context(), l.ID)
			require.NoError(t, err)
			return left.TTL >= 0
		}
		time.Sleep(time.Hour)
		require.True(t, exists())
		cancel()
		time.Sleep(11 * time.Second)
		require.False(t, exists())
	})
}

// While the link is interrupted requests wait, and watches receive nothing; nothing is lost.
func TestInterrupt(t *testing.T) {
	inMemory(t, func(t *testing.T, c *clientv3.Client, l *memetcd.Link) {
		watch := c.Watch(t.Context(), "a", clientv3.WithCreatedNotify())
		require.True(t, (<-watch).Created)
		l.Interrupt()
		l.Interrupt()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, etcdtest.Err(c.Put(ctx, "a", "never")), context.DeadlineExceeded)
		put := etcdtest.Go(func() error { return etcdtest.Err(c.Put(t.Context(), "a", "later")) })
		time.Sleep(time.Minute)
		require.Empty(t, put)
		require.Empty(t, watch)
		l.Restore()
		l.Restore()
		require.NoError(t, <-put)
		resp := <-watch
		require.Len(t, resp.Events, 1)
		require.Equal(t, "later", string(resp.Events[0].Kv.Value))
	})
}

// A requested progress shows the present revision to each watch. Watches end with their contexts,
// and with the client.
func TestWatchEnds(t *testing.T) {
	inMemory(t, func(t *testing.T, c *clientv3.Client, _ *memetcd.Link) {
		ctx, cancel := context.WithCancel(t.Context())
		first, second := c.Watch(ctx, "a"), c.Watch(t.Context(), "b")
		synctest.Wait()
		put, err := c.Put(t.Context(), "other", "")
		require.NoError(t, err)
		require.NoError(t, c.RequestProgress(t.Context()))
		for _, watch := range []clientv3.WatchChan{first, second} {
			resp := <-watch
			require.True(t, resp.IsProgressNotify())
			require.Equal(t, put.Header.Revision, resp.Header.Revision)
		}
		cancel()
		_, open := <-first
		require.False(t, open)
		_ = c.Close()
		_, open = <-second
		require.False(t, open)
		_, open = <-c.Watch(t.Context(), "a")
		require.False(t, open)
	})
}
