package regressions

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// twin is one of two processes with one node ID. It gives up leadership when enough receives a
// value.
type twin struct {
	*node
	host   *etcdtest.Host
	enough chan struct{}
}

func startTwin(t *testing.T, c *etcdtest.Cluster, name string, changes ...func(*elector.Config)) *twin {
	t.Helper()
	w := &twin{host: c.Host(t), enough: make(chan struct{}, 1)}
	changes = append(changes, lasting(quiet), func(cfg *elector.Config) { cfg.Leave = 100 * time.Millisecond })
	w.node = stand(t, w.host.Client(t), name, "n", func(ctx context.Context, _ *elector.Leadership) error {
		select {
		case <-w.enough:
		case <-ctx.Done():
		}
		return nil
	}, changes...)
	t.Cleanup(w.host.Mend) // before the node is stopped
	return w
}

// giveUp ends the node's round while etcd cannot be reached, so that its key is left in etcd.
func (w *twin) giveUp(t *testing.T) {
	t.Helper()
	w.host.Cut()
	w.enough <- struct{}{}
	etcdtest.Eventually(t, func() bool { return w.log.says("lease left to expire") }, "the farewell is given up")
}

// What docs/operations/failures.md says that an operator sees: a log line, and the status of the one
// that waits.
const (
	sameID   = "WARN another process, or an earlier instance of this node, has this node ID: its key is not removed"
	sharedID = "two processes share the ID"
)

// Row 50. Two processes run with one node ID. Neither removes the other's key: not when it starts,
// and not after a round whose own key was left.
//
// Fails when the elector removes keys with its node ID without being configured to take over.
func TestRegression50_TwoProcessesWithOneNodeID(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	first := startTwin(t, c, name)
	l := etcdtest.Take(t, first.won, "the first one's win")
	second := startTwin(t, c, name)
	etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 2 }, "both are in the queue")
	require.Equal(t, l.Key(), queueOf(t, c, name)[0], "its key was removed by the other one")
	require.NoError(t, l.Err())
	etcdtest.Eventually(t, func() bool { return second.log.says(sameID) }, "the one that starts later is warned")
	etcdtest.Eventually(t, func() bool {
		reason := second.Status().Reason() // it never follows its own ID
		return reason != nil && strings.Contains(reason.Error(), sharedID) && strings.Contains(reason.Error(), l.Key())
	}, "its status names the other one's key")
	for _, pair := range [][2]*twin{{first, second}, {second, first}} {
		leads, waits := pair[0], pair[1]
		leads.giveUp(t)
		left := queueOf(t, c, name)
		require.Len(t, left, 2, "INVALID: nothing was left")
		leads.host.Mend()
		next := etcdtest.Take(t, waits.won, "the other one's win")
		require.Equal(t, left[1], next.Key())
		etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 2 }, "both are in the queue")
		require.Equal(t, next.Key(), queueOf(t, c, name)[0], "its key was removed by the other one")
		require.NoError(t, next.Err())
	}
	require.True(t, first.log.says(sameID))
}

// Row 50, taken over. The second of two processes with one node ID is configured to take over: it
// removes the key of the first, which cannot reach etcd. When the first one can reach etcd again,
// it does not remove its successor's key, although it is configured to take over as well.
//
// Fails when a node removes in a later round what it removes in its first.
func TestRegression50_TakenOverOnce(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	takeOver := func(cfg *elector.Config) { cfg.TakeOver = true }
	first := startTwin(t, c, name, takeOver)
	old := etcdtest.Take(t, first.won, "the first one's win")
	first.host.Cut()
	begin := time.Now()
	second := startTwin(t, c, name, takeOver)
	l := etcdtest.Take(t, second.won, "the second one's win")
	require.Less(t, time.Since(begin), quiet/2, "it waited for the other one's lease")
	require.Equal(t, []string{l.Key()}, queueOf(t, c, name))
	require.Greater(t, l.Token(), old.Token())

	first.giveUp(t)
	first.host.Mend()
	etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 2 }, "the first one is in the queue again")
	require.Equal(t, l.Key(), queueOf(t, c, name)[0], "its predecessor removed its key")
	require.NoError(t, l.Err())
	etcdtest.Eventually(t, func() bool { return first.log.says(sameID) }, "the first one is warned")
}
