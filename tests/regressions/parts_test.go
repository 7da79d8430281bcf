package regressions

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/compat/concurrency"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// Row 47. A client that the program has put together from a KV, a Watcher and a Lease has no
// context. In other implementations a campaign panics with it when the campaign's context ends; the
// first requests of package concurrency of compat did. In Eldest no code uses a part that the
// client does not have.
//
// Fails when internal/rpcerr.Closed assumes that every client has a context.
func TestRegression47_ClientOfParts(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	cli, name := c.Client(t), etcdtest.Election(t)
	parts := &clientv3.Client{KV: cli.KV, Watcher: cli.Watcher, Lease: cli.Lease}
	alone := func(l *lease.Config, _ *election.Config) { l.Majority = lease.Unconfirmed{} }
	first, second := join(t, parts, name, alone), join(t, parts, name, alone)
	observer, err := observe.New(observe.Config{Election: name, KV: parts, Watcher: parts})
	require.NoError(t, err)
	defer observer.Close()
	tenure := first.Lead(t)
	result := second.Queue(t)
	require.NoError(t, tenure.Proclaim(etcdtest.Context(t), []byte("value")))
	etcdtest.Eventually(t, func() bool { return string(observer.State().Leader.Value) == "value" }, "the leader's value")
	require.NoError(t, tenure.Resign(etcdtest.Context(t)))
	next := electiontest.Wins(t, result)
	require.ErrorIs(t, etcdtest.Err(first.Candidate.Try(etcdtest.Context(t))), eldest.ErrNotElected)
	ctx, cancel := context.WithCancel(context.Background())
	waits := first.QueueUnder(ctx, t)
	etcdtest.Take(t, first.Waiting, "its wait")
	cancel()
	electiontest.Fails(t, waits, context.Canceled)
	require.NoError(t, second.Session.Close(etcdtest.Context(t)))
	require.ErrorIs(t, next.Err(), eldest.ErrClosed)
}

// Row 47, in place of etcd's concurrency package: the session has a context of its own, the client
// has none.
func TestRegression47_DropIn(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	cli, name := c.Client(t), etcdtest.Election(t)
	parts := &clientv3.Client{KV: cli.KV, Watcher: cli.Watcher, Lease: cli.Lease}
	one, err := concurrency.NewSession(parts, concurrency.WithContext(etcdtest.Context(t)), concurrency.WithTTL(-1))
	require.NoError(t, err)
	other, err := concurrency.NewSession(parts, concurrency.WithContext(etcdtest.Context(t)))
	require.NoError(t, err)
	require.NoError(t, concurrency.NewElection(one, name).Campaign(etcdtest.Context(t), "v"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	waiting := etcdtest.Go(func() error { return concurrency.NewElection(other, name).Campaign(ctx, "w") })
	etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 2 }, "the second one waits")
	cancel()
	require.ErrorIs(t, etcdtest.Take(t, waiting, "the end of its campaign"), context.Canceled)
	locker := concurrency.NewLocker(one, name+"-mutex")
	locker.Lock()
	locker.Unlock() //nolint:staticcheck // taken and given back
	require.ErrorIs(t, etcdtest.Err(concurrency.NewSession(parts)), eldest.ErrInvalid, "without a context of its own or of the client's")
	require.NoError(t, other.Close())
	require.NoError(t, one.Close())
}
