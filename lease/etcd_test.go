package lease_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// onEtcd opens a session on real etcd and closes it with the test.
func onEtcd(t *testing.T, cli *clientv3.Client, options lease.Options) *lease.Session {
	t.Helper()
	s, err := lease.Open(etcdtest.Context(t), lease.Config{Lease: cli, Options: options})
	require.NoError(t, err)
	t.Cleanup(s.Abandon)
	return s
}

// put binds a key of the test to the session's lease.
func put(t *testing.T, cli *clientv3.Client, s *lease.Session) string {
	t.Helper()
	key := fmt.Sprintf("%s/%x", t.Name(), int64(s.ID()))
	require.NoError(t, etcdtest.Err(cli.Put(etcdtest.Context(t), key, "v", clientv3.WithLease(s.ID()))))
	return key
}

// count returns 1 if the key exists, otherwise 0.
func count(t *testing.T, cli *clientv3.Client, key string) int64 {
	t.Helper()
	resp, err := cli.Get(etcdtest.Context(t), key, clientv3.WithCountOnly())
	require.NoError(t, err)
	return resp.Count
}

// TestCloseRemovesKeys: Close removes them at once, and may be called again, whether or not the
// client is closed.
func TestCloseRemovesKeys(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	opening, cancel := context.WithCancel(t.Context())
	s, err := lease.Open(opening, lease.Config{Lease: cli, Options: lease.Options{TTL: time.Hour}})
	require.NoError(t, err)
	cancel()
	key := put(t, cli, s)
	require.NoError(t, s.Close(etcdtest.Context(t)))
	require.Zero(t, count(t, cli, key))
	require.NoError(t, s.Close(etcdtest.Context(t)))

	require.ErrorIs(t, etcdtest.Err(lease.Resume(etcdtest.Context(t), lease.Config{Lease: cli}, s.ID())), eldest.ErrSessionLost)
}

// TestLeaseRevokedByHand: the next renewal detects it.
func TestLeaseRevokedByHand(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	s := onEtcd(t, cli, lease.Options{TTL: 8 * time.Second})
	require.NoError(t, etcdtest.Err(cli.Revoke(etcdtest.Context(t), s.ID())))
	select {
	case <-s.Done():
	case <-time.After(etcdtest.Patience):
		t.Fatal("the session lives on without a lease")
	}
	require.ErrorIs(t, s.Err(), eldest.ErrSessionLost)
	require.ErrorContains(t, s.Err(), "the server replied that the lease does not exist")
	require.NoError(t, s.Close(etcdtest.Context(t)))
}

// TestMemberRestart: a member is killed and restarted within the TTL while another one is
// available; the session continues and is renewed.
func TestMemberRestart(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3})
	renewed := make(chan struct{}, 1)
	s := onEtcd(t, c.Client(t), lease.Options{
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
	leader, err := c.Leader(etcdtest.Context(t))
	require.NoError(t, err)
	for i := range c.Size() {
		member := (leader + i) % c.Size()
		require.NoError(t, c.Member(member).Kill())
		for len(renewed) > 0 {
			<-renewed
		}
		await() // renewed through another endpoint
		require.NoError(t, c.Restart(etcdtest.Context(t), member))
	}
	require.NoError(t, s.Close(etcdtest.Context(t)))
}

// TestLostGrantReply: a lease whose grant was not received remains, without keys, and another one
// is granted.
func TestLostGrantReply(t *testing.T) {
	h := etcdtest.Shared(t).Host(t)
	cli := h.Client(t)
	require.NoError(t, etcdtest.Err(cli.Get(etcdtest.Context(t), "x")))
	swallow := h.SwallowNextReply(nil)
	s := onEtcd(t, cli, lease.Options{TTL: 30 * time.Second})
	require.NoError(t, swallow.Wait(etcdtest.Context(t)))
	require.True(t, s.Holds(0))
	require.NoError(t, s.Close(etcdtest.Context(t)))
}
