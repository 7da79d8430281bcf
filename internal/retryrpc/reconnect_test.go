package retryrpc

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Each client connects again at most twice a second, whatever the number of callers.
func TestReconnectIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := &clientv3.Client{}, &clientv3.Client{}
		for range 3 {
			var woken atomic.Int32
			var all sync.WaitGroup
			for range 200 {
				all.Go(func() {
					if _, due := look(one); due {
						woken.Add(1)
					}
				})
			}
			all.Wait()
			require.EqualValues(t, 1, woken.Load())
			_, due := look(one)
			require.False(t, due)
			time.Sleep(reconnectEvery)
		}
		_, due := look(other)
		require.True(t, due)
		Reconnect(nil)
		Reconnect((*clientv3.Client)(nil))
		Reconnect("of another kind")
	})
}

// TestReconnectIsCareful: a client is made to connect only if it had no connection, and the same
// endpoints, at two looks in a row.
func TestReconnectIsCareful(t *testing.T) {
	const broken, connected = true, false
	l := &looking{}
	require.False(t, l.again(broken, []string{"a"}), "the first look")
	require.True(t, l.again(broken, []string{"a"}))
	require.False(t, l.again(broken, []string{"a", "b"}), "the endpoints have just changed")
	require.True(t, l.again(broken, []string{"a", "b"}))
	require.False(t, l.again(connected, []string{"a", "b"}), "etcd may answer, and endpoints may change")
	require.False(t, l.again(broken, []string{"a", "b"}), "etcd may have answered just before")
	require.True(t, l.again(broken, []string{"a", "b"}))

	c := &clientv3.Client{}
	ReconnectsItself(c)
	_, due := look(c)
	require.False(t, due)
}
