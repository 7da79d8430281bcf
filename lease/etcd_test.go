package lease_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// patience is how long real etcd may take for anything.
const patience = time.Minute

// onEtcd opens a session on real etcd and closes it with the test.
func onEtcd(t *testing.T, cli *clientv3.Client, cfg lease.Config) *lease.Session {
	t.Helper()
	cfg.Lease = cli
	s, err := lease.Open(within(t, patience), cfg)
	require.NoError(t, err)
	t.Cleanup(s.Abandon)
	return s
}

// put binds a key of the test's own to the session's lease.
func put(t *testing.T, cli *clientv3.Client, s *lease.Session) string {
	t.Helper()
	key := fmt.Sprintf("%s/%x", t.Name(), int64(s.ID()))
	_, err := cli.Put(within(t, patience), key, "v", clientv3.WithLease(s.ID()))
	require.NoError(t, err)
	return key
}

// count returns whether the key exists, as a number.
func count(t *testing.T, cli *clientv3.Client, key string) int64 {
	t.Helper()
	resp, err := cli.Get(within(t, patience), key, clientv3.WithCountOnly())
	require.NoError(t, err)
	return resp.Count
}

// TestHeldForThreeTTLsOnEtcd: ten seconds of a lease of three.
func TestHeldForThreeTTLsOnEtcd(t *testing.T) {
	t.Parallel()
	const ttl, long = 3 * time.Second, 10 * time.Second
	var rec etcdtest.Recorder
	cli := etcdtest.Shared(t).Client(t, rec.Attach)
	held := make(chan struct{})
	var n atomic.Int32
	begun := time.Now()
	s := onEtcd(t, cli, lease.Config{TTL: ttl, Hooks: lease.Hooks{
		Renewed: func(lease.RenewedEvent) {
			if time.Since(begun) > long && n.CompareAndSwap(0, 1) {
				close(held)
			}
		},
	}})
	require.Equal(t, ttl, s.TTL())
	key := put(t, cli, s)
	select {
	case <-held:
	case <-s.Done():
		t.Fatal(s.Err())
	}
	require.EqualValues(t, 1, count(t, cli, key))
	require.Equal(t, 1, rec.Count("LeaseGrant"))
	// 14 or 15, as a rule; a machine with little time renews less often, or twice
	// because an answer was late.
	renewals := rec.Count("LeaseKeepAlive")
	require.GreaterOrEqual(t, renewals, 4)
	require.LessOrEqual(t, renewals, 30)
}

// TestCloseRemovesKeys: at once, and again without harm, with the client closed
// or not.
func TestCloseRemovesKeys(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	opening, cancel := context.WithCancel(t.Context())
	s, err := lease.Open(opening, lease.Config{Lease: cli, TTL: time.Hour})
	require.NoError(t, err)
	cancel()
	key := put(t, cli, s)
	require.NoError(t, s.Close(within(t, patience)))
	require.Zero(t, count(t, cli, key))
	require.NoError(t, s.Close(within(t, patience)))

	_, err = lease.Resume(within(t, patience), lease.Config{Lease: cli}, s.ID())
	require.ErrorIs(t, err, eldest.ErrSessionLost)
}

// TestLeaseRevokedByHand: the next renewal tells.
func TestLeaseRevokedByHand(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	s := onEtcd(t, cli, lease.Config{TTL: 8 * time.Second})
	_, err := cli.Revoke(within(t, patience), s.ID())
	require.NoError(t, err)
	select {
	case <-s.Done():
	case <-time.After(patience):
		t.Fatal("the session lives on without a lease")
	}
	require.ErrorIs(t, s.Err(), eldest.ErrSessionLost)
	require.ErrorContains(t, s.Err(), "the server says the lease is gone")
	require.NoError(t, s.Close(within(t, patience)))
}

// TestMemberRestart: with its member killed and restarted within the TTL, and
// another one there, the session lives and is renewed.
func TestMemberRestart(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3})
	renewed := make(chan struct{}, 1)
	s := onEtcd(t, c.Client(t), lease.Config{
		TTL: 15 * time.Second,
		Renewal: func(time.Duration) lease.Renewal {
			return lease.Renewal{Every: time.Second, Timeout: time.Second}
		},
		Hooks: lease.Hooks{
			Renewed: func(lease.RenewedEvent) {
				select {
				case renewed <- struct{}{}:
				default:
				}
			},
		},
	})
	await := func() {
		t.Helper()
		select {
		case <-renewed:
		case <-s.Done():
			t.Fatal(s.Err())
		}
	}
	await()
	leader, err := c.Leader(within(t, patience))
	require.NoError(t, err)
	for i := range c.Size() {
		member := (leader + i) % c.Size()
		require.NoError(t, c.Member(member).Kill())
		for len(renewed) > 0 {
			<-renewed
		}
		await() // through another endpoint
		require.NoError(t, c.Restart(within(t, patience), member))
	}
	require.NoError(t, s.Close(within(t, patience)))
}

// TestRegression11BlackHoleOnEtcd: the session's end always comes before the
// lease's, and before a successor can see the key go.
func TestRegression11BlackHoleOnEtcd(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for _, delay := range []time.Duration{0, 100 * time.Millisecond} {
		h := c.Host(t)
		cli := h.Client(t)
		s := onEtcd(t, cli, lease.Config{TTL: 4 * time.Second})
		key := put(t, cli, s)
		h.Delay(0, delay)
		watching, cancel := context.WithCancel(clientv3.WithRequireLeader(context.Background()))
		gone := c.Client(t).Watch(watching, key)
		h.Cut()
		var resp clientv3.WatchResponse
		select {
		case resp = <-gone:
		case <-time.After(patience):
		}
		// The clock is asked: a machine that is busy may let the timer wait.
		held := s.Holds(0)
		cancel()
		require.NoError(t, resp.Err())
		require.Len(t, resp.Events, 1, "the lease did not expire")
		require.Equal(t, clientv3.EventTypeDelete, resp.Events[0].Type)
		require.False(t, held, "the lease expired before the session had ended")
		require.Error(t, s.Context().Err())
		require.ErrorIs(t, s.Err(), eldest.ErrSessionLost)
	}
}

// TestLostGrantReply: the lease whose grant was never heard of stays behind, bound
// to nothing, and another is granted.
func TestLostGrantReply(t *testing.T) {
	h := etcdtest.Shared(t).Host(t)
	cli := h.Client(t)
	_, err := cli.Get(within(t, patience), "x")
	require.NoError(t, err)
	swallow := h.SwallowNextReply(nil)
	s := onEtcd(t, cli, lease.Config{TTL: 30 * time.Second})
	require.NoError(t, swallow.Wait(within(t, patience)))
	require.True(t, s.Holds(0))
	require.NoError(t, s.Close(within(t, patience)))
}
