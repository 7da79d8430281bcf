package lease_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
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

// keysOf returns the key if it exists.
func keysOf(t *testing.T, cli *clientv3.Client, key string) []*mvccpb.KeyValue {
	t.Helper()
	resp, err := cli.Get(etcdtest.Context(t), key)
	require.NoError(t, err)
	return resp.Kvs
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
	require.Empty(t, keysOf(t, cli, key))
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

// Row 3. A lease is held for three TTLs, by as many renewals as are configured: one at each interval,
// which is shortened by a tenth at most, and no request of a renewal beside those that are reported.
//
// Fails if a session renews more often than it is configured to.
func TestHeldForThreeTTLsOnEtcd(t *testing.T) {
	t.Parallel()
	const ttl, every = 3 * time.Second, 600 * time.Millisecond
	env := etcdtest.NewEnv(t, etcdtest.Shared(t))
	reported := make(chan lease.RenewedEvent, 1000)
	begin := time.Now()
	s := onEtcd(t, env.Client, lease.Options{
		TTL:     ttl,
		Renewal: func(time.Duration) lease.Renewal { return lease.Renewal{Every: every, Timeout: every} },
		Hooks:   lease.Hooks{Renewed: func(e lease.RenewedEvent) { reported <- e }},
	})
	key := put(t, env.Admin, s)
	select {
	case <-time.After(3 * ttl):
	case <-s.Done():
		t.Fatal(s.Err())
	}
	require.True(t, s.Holds(0))
	require.Len(t, keysOf(t, env.Admin, key), 1)
	renewals := len(reported)
	took := time.Since(begin)
	require.LessOrEqual(t, renewals, int(took/(every*9/10)), "more than are configured")
	require.GreaterOrEqual(t, renewals, int(3*ttl/(ttl-every)), "the lease cannot live by so few")
	for range renewals {
		require.Equal(t, ttl, (<-reported).TTL)
	}
	require.NoError(t, s.Close(etcdtest.Context(t)))
	require.Empty(t, keysOf(t, env.Admin, key))
}

// Row 3. etcd changes the TTL of a lease: it is revoked, and granted anew with the same ID. The next
// renewal reports that, and from then on the session renews at a quarter of the new TTL.
//
// Fails if the intervals follow from the TTL that was granted first.
func TestChangedTTLOnEtcd(t *testing.T) {
	t.Parallel()
	const before, after = 3 * time.Second, 9 * time.Second
	cli := etcdtest.Shared(t).Client(t)
	for attempt := 0; ; attempt++ {
		reported := make(chan lease.RenewedEvent, 1000) // renewals with the new TTL
		s := onEtcd(t, cli, lease.Options{TTL: before, Hooks: lease.Hooks{Renewed: func(e lease.RenewedEvent) {
			if e.TTL == after {
				reported <- e
			}
		}}})
		ctx := etcdtest.Context(t)
		begin := time.Now()
		require.NoError(t, etcdtest.Err(cli.Revoke(ctx, s.ID())))
		_, err := pb.NewLeaseClient(cli.ActiveConnection()).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: int64(s.ID()), TTL: int64(after / time.Second)})
		require.NoError(t, err)
		select {
		case <-time.After(2 * before):
		case <-s.Done(): // a renewal came between the two requests
			require.Less(t, attempt, 10, s.Err())
			continue
		}
		require.Equal(t, after, s.TTL())
		require.NotEmpty(t, reported)
		// The first one follows the former rhythm, the others come at a quarter of the new TTL, less a
		// tenth.
		renewals := len(reported)
		require.LessOrEqual(t, renewals, 1+int(time.Since(begin)/(after/4*9/10)), "the rhythm of the former TTL")
		require.NoError(t, s.Close(etcdtest.Context(t)))
		return
	}
}

// Row 1. An etcd with the default timeouts (election: 1 s) grants no TTL below 2 s. The session reports
// and uses what was granted, not what was asked for.
//
// Fails if the TTL of the session is the one that was asked for.
func TestGrantedTTLOfADefaultEtcd(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Heartbeat: 100 * time.Millisecond, Election: time.Second})
	s := onEtcd(t, c.Client(t), lease.Options{TTL: time.Second})
	require.Equal(t, 2*time.Second, s.TTL())
	require.NoError(t, s.Close(etcdtest.Context(t)))
}

// TestLeaseOutlivesAnOutage: etcd expires no lease while none of its members runs, and then starts the
// TTL again. Close, which has tried for one TTL, does not say that the lease has expired.
func TestLeaseOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 1})
	cli := c.Client(t)
	s := onEtcd(t, cli, lease.Options{TTL: 3 * time.Second})
	key := put(t, cli, s)
	require.NoError(t, c.Member(0).Kill())
	err := s.Close(etcdtest.Context(t))
	require.ErrorIs(t, err, eldest.ErrUnavailable)
	require.NoError(t, c.Restart(etcdtest.Context(t), 0))
	require.NotEmpty(t, keysOf(t, cli, key), "the lease has expired")
	require.NotContains(t, err.Error(), "has expired")
	etcdtest.Eventually(t, func() bool { return len(keysOf(t, cli, key)) == 0 }, "the lease never expires")
}
