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
					if due(one) {
						woken.Add(1)
					}
				})
			}
			all.Wait()
			require.EqualValues(t, 1, woken.Load())
			require.False(t, due(one))
			time.Sleep(reconnectEvery)
		}
		require.True(t, due(other))
		Reconnect(nil)
		Reconnect((*clientv3.Client)(nil))
		Reconnect("of another kind")
	})
}
