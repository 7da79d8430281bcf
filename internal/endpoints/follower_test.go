package endpoints_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/endpoints"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

func dial(t *testing.T, cfg clientv3.Config) *clientv3.Client {
	t.Helper()
	client, err := endpoints.Dial(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func has(client *clientv3.Client, endpoint string) func() bool {
	return func() bool { return slices.Contains(client.Endpoints(), endpoint) }
}

// TestIdleClientFollows: a client without a session requests the members by itself.
func TestIdleClientFollows(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3})
	client := dial(t, clientv3.Config{Endpoints: c.Endpoints()[:1], AutoSyncInterval: 100 * time.Millisecond})
	etcdtest.Eventually(t, has(client, c.Member(1).Endpoint), "member 1 is added")
	etcdtest.Eventually(t, has(client, c.Member(2).Endpoint), "member 2 is added")
	require.NoError(t, c.Member(0).Kill())
	etcdtest.Reachable(t, client)
}

// TestAfterAFailure: a request that fails makes the client request the members at once, and not
// after the interval.
func TestAfterAFailure(t *testing.T) {
	t.Parallel()
	c := endpoints.Three(t)
	client := dial(t, clientv3.Config{Endpoints: c.Endpoints()[:1], AutoSyncInterval: 100 * etcdtest.Patience})
	_, err := client.Get(etcdtest.ContextFor(t, time.Nanosecond), "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	etcdtest.Eventually(t, has(client, c.Member(1).Endpoint), "member 1 is added")
}

// TestSessionsPayForIt: with a session no request is added, because its own lists are read; and
// without one nothing is sent before the interval has passed.
func TestSessionsPayForIt(t *testing.T) {
	t.Parallel()
	c := endpoints.Three(t)
	var sent etcdtest.Recorder
	cfg := clientv3.Config{Endpoints: c.Endpoints()[:1], AutoSyncInterval: time.Hour}
	sent.Attach(&cfg)
	client := dial(t, cfg)
	_, err := client.Get(etcdtest.Context(t), "k")
	require.NoError(t, err)
	renewed := make(chan struct{}, 100)
	session, err := lease.Open(etcdtest.Context(t), lease.Config{Lease: client, Options: lease.Options{
		TTL: time.Minute, Renewal: func(time.Duration) lease.Renewal {
			return lease.Renewal{Every: 50 * time.Millisecond, Timeout: 5 * time.Second}
		},
		Hooks: lease.Hooks{Renewed: func(lease.RenewedEvent) {
			select {
			case renewed <- struct{}{}:
			default:
			}
		}},
	}})
	require.NoError(t, err)
	etcdtest.Take(t, renewed, "a renewal")
	etcdtest.Eventually(t, func() bool { return has(client, c.Member(1).Endpoint)() && has(client, c.Member(2).Endpoint)() }, "the members are added")
	for range 5 {
		etcdtest.Take(t, renewed, "a renewal")
	}
	require.Equal(t, 3, sent.Count("Status"), "one for the configured endpoint, and one for each member")
	require.NoError(t, session.Close(etcdtest.Context(t)))
}

// TestDisabled: with a negative interval the endpoints stay the same, and nothing is sent.
func TestDisabled(t *testing.T) {
	t.Parallel()
	c := endpoints.Three(t)
	var sent etcdtest.Recorder
	cfg := clientv3.Config{Endpoints: c.Endpoints()[:1], AutoSyncInterval: -1}
	sent.Attach(&cfg)
	client := dial(t, cfg)
	for range 3 {
		_, err := client.MemberList(etcdtest.Context(t))
		require.NoError(t, err)
	}
	require.NoError(t, client.Close()) // nothing runs any more
	require.Equal(t, c.Endpoints()[:1], client.Endpoints())
	require.Equal(t, 3, sent.Count())
}

// TestClosedWithItsContext: the goroutine ends with the client's context as well; TestMain checks that.
func TestClosedWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := dial(t, clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, Context: ctx, AutoSyncInterval: time.Millisecond})
	cancel()
	<-client.Ctx().Done()
}

// TestProgramAndFollower: the program sets the endpoints while the follower probes members. The race
// detector reports it if probes use the client itself.
func TestProgramAndFollower(t *testing.T) {
	t.Parallel()
	c := endpoints.Three(t)
	client := dial(t, clientv3.Config{Endpoints: c.Endpoints(), AutoSyncInterval: time.Millisecond})
	for i := range 3 {
		one := c.Endpoints()[i : i+1]
		for range 50 {
			client.SetEndpoints(one...)
			require.NoError(t, etcdtest.Err(client.MemberList(etcdtest.Context(t))))
		}
		etcdtest.Eventually(t, func() bool { return len(client.Endpoints()) == 3 }, "the others are added")
	}
}

// TestUserIsLoggedInOnce: probes have the token of the client, also where etcd requires one, and do not
// log in themselves.
func TestUserIsLoggedInOnce(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3})
	admin := c.Client(t)
	for _, user := range []string{"root", "user"} {
		require.NoError(t, etcdtest.Err(admin.UserAdd(etcdtest.Context(t), user, "secret")))
		require.NoError(t, etcdtest.Err(admin.RoleAdd(etcdtest.Context(t), user)))
		require.NoError(t, etcdtest.Err(admin.UserGrantRole(etcdtest.Context(t), user, user)))
	}
	require.NoError(t, etcdtest.Err(admin.AuthEnable(etcdtest.Context(t))))
	cfg := clientv3.Config{Endpoints: c.Endpoints()[:1], AutoSyncInterval: 100 * time.Millisecond, Username: "user", Password: "secret"}
	var sent etcdtest.Recorder
	sent.Attach(&cfg)
	client := dial(t, cfg)
	etcdtest.Eventually(t, func() bool { return len(client.Endpoints()) == 3 }, "the members are added")
	require.Equal(t, 1, sent.Count("Authenticate"))
}
