package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peertest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/postgres"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { peertest.Main(m, nil) }

// All tests use one server with the shortest settings.
func TestPostgres(t *testing.T) {
	servers := peertest.Start(t, postgres.System(), peer.Shortest)
	require.Regexp(t, `^PostgreSQL \d+\.\d+$`, servers.Version())
	require.Equal(t, 1, servers.Nodes())
	_, _, err := servers.KillLeader(etcdtest.Context(t))
	require.ErrorIs(t, err, errors.ErrUnsupported)

	t.Run("leadership is handed over", func(t *testing.T) { handOver(t, servers) })
	t.Run("a partitioned leader loses its leadership", func(t *testing.T) { partition(t, servers) })
	t.Run("a candidate that gives up leaves the queue", func(t *testing.T) { giveUp(t, servers) })
	t.Run("a client can be closed while its leader waits for an answer", func(t *testing.T) { closeBusy(t, servers) })
	t.Run("an idle election writes nothing", func(t *testing.T) { rest(t, servers) })
	t.Run("many candidates are queued", func(t *testing.T) { many(t, servers) })
}

// With the default settings a partitioned leader is told nothing, and keeps the lock.
func TestDefaults(t *testing.T) {
	servers := peertest.Start(t, postgres.System(), peer.Defaults)
	a := peertest.Participants(t, postgres.System(), servers, peer.Defaults, 1)[0]
	leader := a.Lead("a")
	a.Cut()
	etcdtest.Never(t, func() bool { return !leader.Holds() }, 3*time.Second, "a notice")
	a.Heal()
	require.NoError(t, leader.Append(etcdtest.Context(t), "a1"))
}

func handOver(t *testing.T, servers peer.Servers) {
	ctx, p := etcdtest.Context(t), dial(t, servers, 2)
	a, b := p[0], p[1]
	require.ErrorIs(t, a.Observe(ctx, nil), errors.ErrUnsupported)
	first := a.Lead("a")
	second := b.Campaign("b")
	second.Wait()
	require.True(t, first.Holds())
	require.NoError(t, first.Append(ctx, "a1"))
	require.NoError(t, first.Append(ctx, "a2"))
	require.NoError(t, first.Resign(ctx))
	require.False(t, first.Holds())
	require.ErrorIs(t, first.Append(ctx, "a3"), peer.ErrRefused)

	next := second.Win()
	require.True(t, next.Holds())
	require.NoError(t, next.Append(ctx, "b1"))
	log, err := a.Log(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"a1", "a2", "b1"}, log)
}

func partition(t *testing.T, servers peer.Servers) {
	ctx, p := etcdtest.Context(t), dial(t, servers, 2)
	a, b := p[0], p[1]
	old := a.Lead("a")
	require.NoError(t, old.Append(ctx, "a1"))

	begin := time.Now()
	a.Cut()
	blocked := etcdtest.Go(func() error { return old.Append(ctx, "a2") })
	successor := b.Campaign("b").Win()
	t.Logf("the successor leads %v after the partition", time.Since(begin))
	etcdtest.Eventually(t, func() bool { return !old.Holds() }, "the old leader notices")
	t.Logf("the old leader knows %v after the partition", time.Since(begin))
	require.NoError(t, successor.Append(ctx, "b1"))
	require.Error(t, etcdtest.Take(t, blocked, "the write during the partition fails"))
	a.Heal()
	require.ErrorIs(t, old.Append(ctx, "a3"), peer.ErrRefused)
	log, err := b.Log(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"a1", "b1"}, log)
}

func giveUp(t *testing.T, servers peer.Servers) {
	p := dial(t, servers, 2)
	a, b := p[0], p[1]
	leader := a.Lead("a")
	short, cancel := context.WithCancel(etcdtest.Context(t))
	quitter, err := b.Candidate("b")
	require.NoError(t, err)
	_, err = quitter.Campaign(short, cancel)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, leader.Resign(etcdtest.Context(t)))
	require.True(t, a.Campaign("a").Win().Holds(), "b does not get the lock for long")
}

func closeBusy(t *testing.T, servers peer.Servers) {
	c := dial(t, servers, 1)[0]
	leader := c.Lead("a")
	c.Cut()
	blocked := etcdtest.Go(func() error { return leader.Append(etcdtest.Context(t), "a1") })
	require.NoError(t, c.Close())
	require.Error(t, etcdtest.Take(t, blocked, "the write fails"))
}

func rest(t *testing.T, servers peer.Servers) {
	ctx, p := etcdtest.Context(t), dial(t, servers, 2)
	a, b := p[0], p[1]
	leader := a.Lead("a")
	second := b.Campaign("b")
	second.Wait()
	writes := func() int64 {
		n, err := servers.Writes(ctx)
		require.NoError(t, err)
		return n
	}
	before := writes()
	etcdtest.Never(t, func() bool { return writes() != before }, 2*time.Second, "a write without a change")
	require.NoError(t, leader.Append(ctx, "a1"))
	require.Equal(t, before+1, writes())
	require.NoError(t, leader.Resign(ctx))
	second.Win()
	require.Equal(t, before+1, writes(), "a lock is not written")
}

func many(t *testing.T, servers peer.Servers) {
	const n = 200 // twice the server's default of max_connections
	c := dial(t, servers, 1)[0]
	c.Lead("leader")
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	defer cancel()
	queued := make(chan struct{}, n)
	var ended sync.WaitGroup
	for i := range n {
		candidate, err := c.Candidate(fmt.Sprint("c-", i))
		require.NoError(t, err)
		ended.Go(func() { _, _ = candidate.Campaign(ctx, func() { queued <- struct{}{} }) })
	}
	for range n {
		etcdtest.Take(t, queued, "all candidates are queued")
	}
	cancel()
	ended.Wait()
}

// dial opens n clients of a new election, with the shortest settings.
func dial(t *testing.T, servers peer.Servers, n int) []*peertest.Participant {
	t.Helper()
	return peertest.Participants(t, postgres.System(), servers, peer.Shortest, n)
}
