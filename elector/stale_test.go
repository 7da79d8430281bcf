package elector_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// orphan puts a candidate's key, whose lease is not renewed, into the queue.
func orphan(t *testing.T, cli *clientv3.Client, name string, id identity.Identity) (eldest.Token, string) {
	t.Helper()
	granted, err := cli.Grant(etcdtest.Context(t), 600)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = cli.Revoke(etcdtest.Context(t), granted.ID) })
	value, err := identity.Protobuf{}.Encode(id)
	require.NoError(t, err)
	key := keys.Candidate(name, int64(granted.ID))
	resp, err := cli.Put(etcdtest.Context(t), key, string(value), clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	return eldest.Token(resp.Header.Revision), key
}

// Requirement 39: with TakeOver the keys that earlier instances of the node left are removed,
// whether these led or waited; keys of other nodes, and those that it cannot decode, are kept.
func TestRequirement39EarlierLife(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	orphan(t, cli, name, identity.Identity{NodeID: "n", Instance: "earlier"})
	orphan(t, cli, name, identity.Identity{NodeID: "n"})
	_, others := orphan(t, cli, name, identity.Identity{NodeID: "other", Instance: "o"})
	_, foreign := orphan(t, cli, name, identity.Identity{NodeID: "foreign"})
	require.NoError(t, etcdtest.Err(cli.Put(etcdtest.Context(t), foreign, "\xff\xff", clientv3.WithIgnoreLease())))
	orphan(t, cli, name, identity.Identity{NodeID: "n", Instance: "even earlier"})
	n := run(t, config(name, "n", cli, func(cfg *elector.Config) { cfg.TakeOver = true }))
	n.follows(t, "other")
	require.Eventually(t, func() bool {
		queue := queueOf(t, cli, name)
		return len(queue) == 3 && queue[0].Key == others && queue[1].Key == foreign
	}, etcdtest.Patience, 2*time.Millisecond)
	require.NoError(t, etcdtest.Err(cli.Delete(etcdtest.Context(t), others)))
	require.NoError(t, etcdtest.Err(n.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return errors.Is(s.Reason(), eldest.ErrForeignValue) })))
	require.NoError(t, etcdtest.Err(cli.Delete(etcdtest.Context(t), foreign)))
	etcdtest.Take(t, n.won, "the win")
}

// By default a node waits for the key of an earlier instance, as all other candidates do: the key
// may be that of a running process.
func TestEarlierLifeIsWaitedFor(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	_, key := orphan(t, cli, name, identity.Identity{NodeID: "n", Instance: "earlier"})
	n := run(t, config(name, "n", cli))
	s, err := n.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return errors.Is(s.Reason(), eldest.ErrNoLeader) })
	require.NoError(t, err)
	require.ErrorContains(t, s.Reason(), "another instance")
	queue := queueOf(t, cli, name)
	require.Len(t, queue, 2)
	require.Equal(t, key, queue[0].Key)
	require.NoError(t, etcdtest.Err(cli.Revoke(etcdtest.Context(t), clientv3.LeaseID(queue[0].Lease)))) // it expires
	require.Equal(t, queue[1].Key, etcdtest.Take(t, n.won, "the win").Key())
}
