package rig_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
)

// Minutes of a lease's life pass in milliseconds, and a crash expires it.
func TestVirtualTime(t *testing.T) {
	begun := time.Now()
	rig.Run(t, func(w *rig.World) {
		ctx := context.Background()
		h, admin := w.Host("a"), w.Host("admin")
		lease, err := h.Client.Grant(ctx, 5)
		require.NoError(t, err)
		renewals, err := h.Client.KeepAlive(ctx, lease.ID)
		require.NoError(t, err)
		_, err = h.Client.Put(ctx, "k", "v", clientv3.WithLease(lease.ID))
		require.NoError(t, err)
		gone := admin.Client.Watch(ctx, "k")

		n := 0
		for end := w.Now() + 10*time.Minute; w.Now() < end; n++ {
			<-renewals
		}
		t.Logf("%d renewals", n)
		require.Greater(t, n, 100)
		died := w.Now()
		h.Kill()
		resp := <-gone
		require.NoError(t, resp.Err())
		require.InDelta(t, 5*time.Second, w.Now()-died, float64(3*time.Second))
		t.Logf("key gone %v after the crash", w.Now()-died)
	})
	t.Logf("real time %v", time.Since(begun))
}
