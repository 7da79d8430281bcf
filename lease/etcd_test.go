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

// often has a session renew without long waits for a test.
func often(time.Duration) lease.Renewal {
	return lease.Renewal{Every: 200 * time.Millisecond, Timeout: time.Second}
}

// put binds a key of the test to the session's lease.
func put(t *testing.T, cli *clientv3.Client, s *lease.Session) string {
	t.Helper()
	key := fmt.Sprintf("%s/%x", t.Name(), int64(s.ID()))
	require.NoError(t, etcdtest.Err(cli.Put(etcdtest.Context(t), key, "v", clientv3.WithLease(s.ID()))))
	return key
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
	left, err := cli.Get(etcdtest.Context(t), key)
	require.NoError(t, err)
	require.Empty(t, left.Kvs)
	require.NoError(t, s.Close(etcdtest.Context(t)))

	require.ErrorIs(t, etcdtest.Err(lease.Resume(etcdtest.Context(t), lease.Config{Lease: cli}, s.ID())), eldest.ErrSessionLost)
}

// TestLeaseRevokedByHand: the next renewal detects it.
func TestLeaseRevokedByHand(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	s := onEtcd(t, cli, lease.Options{TTL: time.Hour, Renewal: often})
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
		TTL:     15 * time.Second,
		Renewal: often,
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
