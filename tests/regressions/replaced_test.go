package regressions

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// Row 66. All members of etcd are replaced by members with other addresses, one after another, under
// a leader and a waiter that were configured with the old ones. In other implementations
// the client reaches no member at the end; and clients that are told the new addresses by Sync or
// SetEndpoints crash, if gRPC is made to connect at once meanwhile. In Eldest the leader keeps its
// tenure and the waiter its key.
//
// Fails when elector.Dial does not add new members to the endpoints.
func TestRegression66_AllMembersReplaced(t *testing.T) {
	t.Parallel()
	const granted = 20 * time.Second // a replacement takes seconds on a busy machine
	c := etcdtest.Start(t, etcdtest.Config{Members: 3, Replaceable: true})
	old := c.Endpoints()
	name := etcdtest.Election(t)
	var clients []*clientv3.Client
	renewed := make(chan struct{}, 1)
	follows := func(changes ...change) *participant {
		client, err := elector.Dial(clientv3.Config{Endpoints: old})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		clients = append(clients, client)
		return join(t, client, name, append(changes, ttl(granted), func(l *lease.Config, _ *election.Config) { l.Renewal = eager })...)
	}
	leader := follows(func(l *lease.Config, _ *election.Config) {
		l.Hooks.Renewed = func(lease.RenewedEvent) {
			select {
			case renewed <- struct{}{}:
			default:
			}
		}
	})
	tenure := leader.Lead(t)
	waiter := follows()
	result := waiter.Queue(t)
	registered := queueOf(t, c, name)

	for i := range c.Size() {
		require.NoError(t, c.ReplaceElsewhere(etcdtest.Context(t), i))
		for _, client := range clients {
			etcdtest.Eventually(t, func() bool { return slices.Contains(client.Endpoints(), c.Member(i).Endpoint) }, "a client adds the new member %d", i)
		}
		require.NoError(t, tenure.Err())
	}
	for _, endpoint := range old {
		_, err := net.Dial("tcp", endpoint[len("http://"):])
		require.Error(t, err, "INVALID: an old member is still there")
	}
	for range 3 { // at least one of them was sent to a new member
		etcdtest.Take(t, renewed, "a renewal")
	}
	require.NoError(t, tenure.Err())
	require.True(t, tenure.Holds(0))
	require.Equal(t, registered, electiontest.Keys(t, c.Client(t), name), "the same keys")
	_, err := tenure.KV().Put(etcdtest.Context(t), "written-"+name, "by the leader")
	require.NoError(t, err)

	require.NoError(t, tenure.Resign(etcdtest.Context(t)))
	next := electiontest.Wins(t, result)
	require.Greater(t, next.Token(), tenure.Token())
	_, err = next.KV().Put(etcdtest.Context(t), "written-"+name, "by its successor")
	require.NoError(t, err)
}
