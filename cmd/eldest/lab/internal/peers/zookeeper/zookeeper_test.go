package zookeeper_test

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
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/zookeeper"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { peertest.Main(m, nil) }

// All tests use one ensemble, which takes seconds to start.
func TestZooKeeper(t *testing.T) {
	servers := peertest.Start(t, zookeeper.System(), peer.Shortest)
	require.Regexp(t, `^ZooKeeper 3\.\d+\.\d+$`, servers.Version())
	require.Equal(t, 3, servers.Nodes())

	t.Run("leadership is handed over and observed", func(t *testing.T) { handOver(t, servers) })
	t.Run("a partitioned leader loses its leadership", func(t *testing.T) { partition(t, servers) })
	t.Run("a candidate that gives up leaves the queue", func(t *testing.T) { giveUp(t, servers) })
	t.Run("many candidates of one client are queued", func(t *testing.T) { many(t, servers) })
	t.Run("an idle election writes nothing", func(t *testing.T) { rest(t, servers) })
	t.Run("elections continue after the ensemble's leader was killed", func(t *testing.T) { kill(t, servers) })
}

func handOver(t *testing.T, servers peer.Servers) {
	ctx, p := etcdtest.Context(t), dial(t, servers, 3)
	a, b, watcher := p[0], p[1], p[2]
	var seen leaders
	observing, stop := context.WithCancel(ctx)
	observed := etcdtest.Go(func() error { return watcher.Observe(observing, seen.add) })

	first := a.Lead("a")
	etcdtest.Eventually(t, func() bool { return seen.are("a") }, "the observer is notified")
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
	log, err := watcher.Log(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"a1", "a2", "b1"}, log)
	etcdtest.Eventually(t, func() bool { return seen.are("a", "b") }, "the observer is notified of the change")
	stop()
	require.ErrorIs(t, etcdtest.Take(t, observed, "the observer ends"), context.Canceled)
}

func partition(t *testing.T, servers peer.Servers) {
	ctx, p := etcdtest.Context(t), dial(t, servers, 2)
	a, b := p[0], p[1]
	old := a.Lead("a")
	require.NoError(t, old.Append(ctx, "a1"))

	begin := time.Now()
	a.Cut()
	second := b.Campaign("b")
	etcdtest.Eventually(t, func() bool { return !old.Holds() }, "the old leader notices")
	t.Logf("the old leader knows %v after the partition", time.Since(begin))
	successor := second.Win()
	t.Logf("the successor leads %v after the partition", time.Since(begin))
	require.NoError(t, successor.Append(ctx, "b1"))
	a.Heal()
	etcdtest.Eventually(t, func() bool { return errors.Is(old.Append(ctx, "a2"), peer.ErrRefused) }, "the old leader is refused")
	require.False(t, old.Holds())
	log, err := a.Log(ctx)
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
	require.True(t, a.Lead("a").Holds(), "the node of b is deleted")
}

func many(t *testing.T, servers peer.Servers) {
	const candidates = 1000
	p := dial(t, servers, 2)
	a, b := p[0], p[1]
	leader := a.Lead("a")
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	var queued, ended sync.WaitGroup
	begin := time.Now()
	for i := range candidates {
		c, err := b.Candidate(fmt.Sprint("b-", i))
		require.NoError(t, err)
		queued.Add(1)
		ended.Go(func() {
			if tenure, err := c.Campaign(ctx, queued.Done); err == nil {
				_ = tenure.Resign(ctx)
			}
		})
	}
	queued.Wait()
	t.Logf("%d candidates are queued after %v", candidates, time.Since(begin))
	require.True(t, leader.Holds())
	cancel()
	ended.Wait()
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
	require.Equal(t, before+2, writes())
}

func kill(t *testing.T, servers peer.Servers) {
	ctx, leader := etcdtest.Context(t), dial(t, servers, 1)[0].Lead("a")
	require.NoError(t, leader.Append(ctx, "before"))
	killed, restart, err := servers.KillLeader(ctx)
	require.NoError(t, err)
	etcdtest.Eventually(t, func() bool {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return leader.Append(short, "after") == nil
	}, "an entry is added")
	t.Logf("an entry was added %v after the ensemble's leader was killed; the leader still leads: %v", time.Since(killed), leader.Holds())
	require.NoError(t, restart(ctx))
}

// dial opens n clients of a new election, with the shortest settings.
func dial(t *testing.T, servers peer.Servers, n int) []*peertest.Participant {
	t.Helper()
	return peertest.Participants(t, zookeeper.System(), servers, peer.Shortest, n)
}

// leaders are those that an observer was notified of.
type leaders struct {
	mu  sync.Mutex
	ids []string
}

func (l *leaders) add(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = append(l.ids, id)
}

func (l *leaders) are(ids ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(ids) != len(l.ids) {
		return false
	}
	for i := range ids {
		if ids[i] != l.ids[i] {
			return false
		}
	}
	return true
}
