package regressions

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Row 26, the key that is left. The leader gives up while etcd cannot be reached, so its
// farewell does not arrive, and its lease has a minute to live when the network is back.
// Elsewhere the node then waits for itself, and everybody with it. Here its next round
// takes the key of its earlier one away, and leads.
//
// Fails when a round does not evict what an earlier one could not take with it.
func TestRegression26_KeyOfAnEarlierRound(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	host := c.Host(t)
	enough := make(chan struct{}, 1)
	n := stand(t, host.Client(t), name, "n", func(ctx context.Context, _ *elector.Leadership) error {
		select {
		case <-enough:
		case <-ctx.Done():
		}
		return nil
	}, lasting(quiet), func(cfg *elector.Config) { cfg.Leave = 100 * time.Millisecond })
	defer host.Mend() // before the node is stopped
	first := etcdtest.Take(t, n.won, "the first win")
	host.Cut()
	enough <- struct{}{}
	n.becomes(t, elector.Neither)
	etcdtest.Eventually(t, func() bool { return n.log.says("lease left to expire") }, "the farewell is given up")
	require.Equal(t, []string{first.Key()}, queueOf(t, c, name), "INVALID: nothing was left")
	host.Mend()
	begin := time.Now()
	second := etcdtest.Take(t, n.won, "the next win")
	require.Less(t, time.Since(begin), quiet/2, "it waited for its own lease")
	require.Greater(t, second.Token(), first.Token())
	require.Equal(t, []string{second.Key()}, queueOf(t, c, name))
	require.EqualValues(t, 2, n.calls.Load())
}
