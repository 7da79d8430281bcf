package expiry

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/lease"
)

// put binds a key to the session's lease.
func put(w *rig.World, cli *clientv3.Client, s *lease.Session) string {
	w.T.Helper()
	key := fmt.Sprintf("of/%x", int64(s.ID()))
	_, err := cli.Put(w.T.Context(), key, "v", clientv3.WithLease(s.ID()))
	require.NoError(w.T, err)
	return key
}

// counting counts what is asked of etcd for a lease.
type counting struct {
	*clientv3.Client
	grants, renewals atomic.Int32
}

func (c *counting) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	c.grants.Add(1)
	return c.Client.Grant(ctx, ttl)
}

func (c *counting) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	c.renewals.Add(1)
	return c.Client.KeepAliveOnce(ctx, id)
}

// A lease of three seconds is held for five minutes by one grant, and a renewal at each
// quarter of it.
//
// Broken by a session that renews too seldom, or more often than it says.
func TestHeldForAHundredTTLs(t *testing.T) {
	const ttl, long = 3 * time.Second, 5 * time.Minute
	rig.Run(t, func(w *rig.World) {
		cli := &counting{Client: w.Host("a").Client}
		s := open(w, lease.Config{Lease: cli, TTL: ttl})
		require.Equal(w.T, ttl, s.TTL())
		key := put(w, cli.Client, s)
		time.Sleep(long)
		require.NoError(w.T, s.Err())
		resp, err := cli.Get(w.T.Context(), key)
		require.NoError(w.T, err)
		require.Len(w.T, resp.Kvs, 1)
		require.EqualValues(w.T, 1, cli.grants.Load())
		every := lease.DefaultRenewal(ttl).Every
		require.GreaterOrEqual(w.T, cli.renewals.Load(), int32(long/every))
		require.LessOrEqual(w.T, cli.renewals.Load(), int32(long/(every-every/10)), "a tenth is drawn at random")
	})
}

// Regression 11: nothing gets through any more, from any moment between two renewals on, and
// with replies that were late before. The session ends before the lease, by the margin.
//
// Broken by a deadline that counts from the receipt of a reply, and by a session without a
// margin or without a timer.
func TestRegression11BlackHole(t *testing.T) {
	const ttl, phases = 4 * time.Second, 10
	margin := max(ttl/10, lease.MinMargin)
	for _, late := range []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond} {
		rig.Run(t, func(w *rig.World) {
			host, admin := w.Host("a"), w.Host("admin")
			for i := range phases {
				s := open(w, lease.Config{Lease: host.Client, TTL: ttl})
				gone := admin.Client.Watch(w.T.Context(), put(w, host.Client, s))
				ended := moment(w, s.Done())
				host.Delay(rig.In, late)
				time.Sleep(ttl + late + lease.DefaultRenewal(ttl).Every*time.Duration(i)/phases)
				require.True(w.T, s.Holds(0))
				cut := w.Now()
				host.Cut(rig.Both)
				resp := take(w, gone, "the end of the lease")
				require.Equal(w.T, clientv3.EventTypeDelete, resp.Events[0].Type)
				expired := w.Now()
				require.ErrorIs(w.T, context.Cause(s.Context()), eldest.ErrSessionLost)
				require.GreaterOrEqual(w.T, expired-take(w, ended, "when it ended"), margin, "replies are late by %v, cut at %v", late, cut)
				require.Less(w.T, expired-cut, ttl+time.Second, "INVALID: it was renewed after the cut")
				host.Heal()
			}
		})
	}
}
